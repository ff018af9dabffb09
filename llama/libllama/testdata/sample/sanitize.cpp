// Samples random and hostile rows, for the sanitizers. It is built together
// with the sampler's sources, without llama.cpp.

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "shim_sample.h"

extern "C" struct llama_context * b3_context_llama(b3_context *) { return nullptr; }
extern "C" float * llama_get_logits_ith(struct llama_context *, int32_t) { return nullptr; }

static std::mt19937 rng(1);

static int32_t below(int32_t n) { return (int32_t) (rng() % (uint32_t) n); }

template <typename T> static T one_of(std::initializer_list<T> values) { return values.begin()[below((int32_t) values.size())]; }

static float normal() { return std::normal_distribution<float>(0, 3)(rng); }

// odd is a float that is out of the ordinary.
static float odd() {
    const float inf = INFINITY;
    return one_of({inf, -inf, NAN, 0.0f, -0.0f, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45f});
}

static std::vector<float> logits_of(int32_t vocab, int32_t kind) {
    std::vector<float> x(vocab);
    for (float & v : x) {
        switch (kind) {
            case 0: v = normal(); break;
            case 1: v = below(100) == 0 ? odd() : normal(); break;
            case 2: v = odd(); break;
            case 3: v = 1; break;
            default: v = -INFINITY; break;
        }
    }
    return x;
}

struct request {
    b3_sample_row row = {};
    std::vector<b3_count> counts;
    std::vector<b3_bias> biases;

    explicit request(int32_t vocab, int32_t output, int32_t masks) {
        for (int32_t i = one_of({0, 0, 1, 40, below(vocab + 1)}); i > 0; i--) {
            counts.push_back({below(vocab), one_of({0, 1, 100, INT32_MAX})});
        }
        for (int32_t i = std::min(vocab, one_of({0, 0, 1, 300})); i > 0; i--) {
            biases.push_back({below(vocab), one_of({1.0f, -100.0f, -INFINITY, FLT_MAX})});
        }
        if (below(20) == 0 && !counts.empty()) {
            counts[0].id = one_of({-1, vocab, INT32_MIN, INT32_MAX}); // refused
        }
        row.output      = output;
        row.mask        = below(masks + 1) - 1;
        row.seed        = rng();
        row.step        = rng();
        row.temperature = one_of({0.0f, 1e-45f, 0.7f, 1.0f, 100.0f, FLT_MAX});
        row.top_k       = one_of({0, -1, 1, 40, vocab / 4, vocab - 1, vocab, INT32_MAX});
        row.top_p       = one_of({0.0f, 1e-30f, 0.5f, 0.95f, 0.99999994f, 1.0f});
        row.min_p       = one_of({0.0f, 1e-45f, 0.05f, 1.0f});
        row.presence    = one_of({0.0f, 0.5f, -FLT_MAX, FLT_MAX});
        row.frequency   = one_of({0.0f, 0.5f, -FLT_MAX, FLT_MAX});
        row.repetition  = one_of({1.0f, 1.1f, 1e-45f, FLT_MAX});
        row.top         = one_of({-1, 0, 5, 20});
    }

    b3_sample_row view() {
        row.counts   = counts.data();
        row.n_counts = (int32_t) counts.size();
        row.biases   = biases.data();
        row.n_biases = (int32_t) biases.size();
        return row;
    }
};

static void check(bool ok, const char * what) {
    if (!ok) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void round_of(int32_t vocab, int32_t level) {
    b3_error err;
    b3_sampler * s = nullptr;
    if (b3_sampler_new(vocab, 3, level, &s, &err) != B3_OK) {
        return; // not on this CPU
    }
    constexpr int32_t outputs = 5, masks = 3, rows = 12;
    std::vector<float> logits;
    for (int32_t kind = 0; kind < outputs; kind++) {
        const std::vector<float> x = logits_of(vocab, kind);
        logits.insert(logits.end(), x.begin(), x.end());
    }
    std::vector<uint64_t> bits((size_t) masks * ((vocab + 63) / 64));
    for (uint64_t & w : bits) {
        w = one_of<uint64_t>({0, 0, UINT64_MAX, rng()});
    }
    std::vector<request> requests;
    std::vector<b3_sample_row> views;
    for (int32_t i = 0; i < rows; i++) {
        requests.emplace_back(vocab, below(outputs), masks);
    }
    for (request & r : requests) {
        views.push_back(r.view());
    }
    std::vector<b3_sampled> out(rows);
    const int code = b3_sample_logits(s, logits.data(), views.data(), rows, bits.data(), out.data(), &err);
    check(code == B3_OK || code == B3_FAILED, "an exception");
    for (const b3_sampled & o : out) {
        check(o.id >= -1 && o.id < vocab, "a token out of range");
        check(o.n >= 0 && o.n <= B3_MAX_TOP, "too many alternatives");
    }
    b3_sampler_free(s);
}

int main() {
    for (int32_t level = 0; level < 3; level++) {
        for (int32_t i = 0; i < 150; i++) {
            round_of(one_of({1, 2, 63, 64, 65, 255, 256, 257, 1000, 5003}), level);
        }
        round_of(151936, level); // enough for several threads
    }
    return 0;
}
