// The sampler's inner loops over blocks of logits, compiled once per
// instruction set and chosen at run time: the program is built for the oldest
// x86-64, and runs on what it finds.
#pragma once

#include <cstdint>

#include "shim_sample.h"

namespace b3 {

// A row of logits is worked on in blocks of so many.
constexpr int32_t block_size = 256;
// A block's tokens fall into groups, for finer maxima than the block's.
constexpr int32_t block_groups = 16;
constexpr int32_t block_words = block_size / 64; // of a token mask

// Logits that lie further than this below the largest, in units of the
// temperature, have the weight 0: e^-86 is the last whose float is not denormal.
constexpr float lowest_exponent = -86.0f;

// A candidate is a token that may be drawn. weight is e^((logit-max)/temperature).
struct candidate {
    float   logit;
    float   weight;
    int32_t id;
};

// kernels work on one block. NaN counts as -inf, which never is a candidate.
struct kernels {
    const char * name;
    // max is the largest logit.
    float (*max)(const float * x);
    // group_max puts the largest of each group into out[block_groups].
    void (*group_max)(const float * x, float * out);
    // weights puts e^((x-max)*scale) into w[block_size]; x must not exceed max.
    void (*weights)(const float * x, float max, float scale, float * w);
    // sum is the sum of these weights.
    float (*sum)(const float * x, float max, float scale);
    // collect appends the logits that reach threshold, which must be finite, to
    // out and returns how many. The block's first token is first.
    int32_t (*collect)(const float * x, float threshold, int32_t first, candidate * out);
    // mask copies x to out, with -inf where words[block_words] has no bit. They
    // may be the same.
    void (*mask)(const float * x, const uint64_t * words, float * out);
    // penalize changes the logits that counts list, which all are in the block.
    void (*penalize)(float * x, const b3_count * counts, int32_t n, const b3_sample_row & request);
};

// find_kernels returns the kernels of an instruction set: 0 is the baseline,
// higher ones are wider. It returns nullptr for what this CPU cannot run.
const kernels * find_kernels(int32_t level);
// best_kernels returns the widest that this CPU can run.
const kernels & best_kernels();

}  // namespace b3
