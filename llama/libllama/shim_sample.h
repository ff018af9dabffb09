// Sampling: tokens drawn from the logits of the last decode. The meaning of the
// fields is that of package llama's SampleRow, Sampling and Sampled.
#pragma once

#include "shim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    B3_MAX_TOP = 20,
};

// The layouts of llama.TokenCount, TokenBias, TokenLogprob and Sampled.
typedef struct b3_count {
    int32_t id;
    int32_t answer;
} b3_count;

typedef struct b3_bias {
    int32_t id;
    float   bias;
} b3_bias;

typedef struct b3_logprob {
    int32_t id;
    float   logprob;
} b3_logprob;

typedef struct b3_sampled {
    int32_t    id; // -1: the row has no candidate
    float      logprob;
    b3_logprob top[B3_MAX_TOP];
    int8_t     n;
} b3_sampled;

typedef struct b3_sample_row {
    int32_t         output;
    int32_t         mask; // -1: none
    uint64_t        seed, step;
    const b3_count * counts;
    const b3_bias *  biases;
    int32_t         n_counts, n_biases;
    float           temperature, top_p, min_p;
    int32_t         top_k;
    float           presence, frequency, repetition; // 1: none
    int32_t         top;
} b3_sample_row;

// A b3_sampler holds the memory and the threads that sampling needs. It keeps
// no state between calls and is for one thread at a time.
typedef struct b3_sampler b3_sampler;

// b3_sampler_new makes a sampler for rows of vocab logits. level chooses the
// instruction set, 0 the baseline; -1 is the best that the CPU has. One that it
// does not have is B3_FAILED.
int  b3_sampler_new(int32_t vocab, int32_t threads, int32_t level, b3_sampler ** out, b3_error * err);
void b3_sampler_free(b3_sampler * s);

// b3_sample draws a token for each row from the logits of the last decode
// (llama_get_logits_ith). An index that is out of range is B3_FAILED.
int b3_sample(b3_sampler * s, b3_context * c, const b3_sample_row * rows, int32_t n,
              const uint64_t * masks, b3_sampled * out, b3_error * err);
// b3_sample_logits is b3_sample over given logits, rows of vocab floats.
int b3_sample_logits(b3_sampler * s, const float * logits, const b3_sample_row * rows, int32_t n,
                     const uint64_t * masks, b3_sampled * out, b3_error * err);

#ifdef __cplusplus
}
#endif
