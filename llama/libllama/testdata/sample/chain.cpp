// Prints what llama.cpp's own samplers make of logits, for the tests of ours.
//
// It reads requests from stdin until its end, and writes for each the number of
// tokens that a chain of bias, penalties, temperature, top-k, top-p and min-p
// leaves, then their ids and probabilities. All numbers are 4 bytes in the
// machine's order, but for probabilities, which are doubles.

#include <llama.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct request {
    int32_t vocab, n_counts, n_biases, top_k;
    float   temperature, top_p, min_p, presence, frequency, repetition;
};

struct count {
    int32_t id, answer;
};

template <typename T> static bool read(T * to, size_t n) { return fread(to, sizeof(T), n, stdin) == n; }
template <typename T> static void write(T x) { fwrite(&x, sizeof x, 1, stdout); }

// penalties adds a sampler of penalties that has seen tokens as often as counts say.
static void penalties(llama_sampler * chain, int32_t vocab, float repetition, float frequency, float presence,
                      const std::vector<count> & counts, int32_t at_least) {
    int32_t seen = 1;
    for (const count & c : counts) {
        seen += std::max(c.answer, at_least);
    }
    llama_sampler * s = llama_sampler_init_penalties(vocab, seen, repetition, frequency, presence);
    for (const count & c : counts) {
        for (int32_t i = 0; i < std::max(c.answer, at_least); i++) {
            llama_sampler_accept(s, c.id);
        }
    }
    llama_sampler_chain_add(chain, s);
}

static llama_sampler * chain_of(const request & r, const std::vector<count> & counts, const std::vector<llama_logit_bias> & biases) {
    llama_sampler * chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_logit_bias(r.vocab, (int32_t) biases.size(), biases.data()));
    // Repetition counts prompt and answer, the others the answer alone.
    penalties(chain, r.vocab, r.repetition, 0, 0, counts, 1);
    penalties(chain, r.vocab, 1, r.frequency, r.presence, counts, 0);
    llama_sampler_chain_add(chain, llama_sampler_init_temp(r.temperature));
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(r.top_k));
    llama_sampler_chain_add(chain, llama_sampler_init_top_p(r.top_p, 1));
    llama_sampler_chain_add(chain, llama_sampler_init_min_p(r.min_p, 1));
    return chain;
}

static bool answer() {
    request r;
    if (!read(&r, 1)) {
        return false;
    }
    std::vector<float> logits(r.vocab);
    std::vector<count> counts(r.n_counts);
    std::vector<llama_logit_bias> biases(r.n_biases);
    if (!read(logits.data(), logits.size()) || !read(counts.data(), counts.size()) || !read(biases.data(), biases.size())) {
        exit(1);
    }
    std::vector<llama_token_data> data;
    for (int32_t id = 0; id < r.vocab; id++) {
        data.push_back({id, logits[id], 0});
    }
    llama_token_data_array tokens = {data.data(), data.size(), -1, false};
    llama_sampler * chain = chain_of(r, counts, biases);
    llama_sampler_apply(chain, &tokens);
    llama_sampler_free(chain);

    float max = -INFINITY;
    for (size_t i = 0; i < tokens.size; i++) {
        max = std::max(max, tokens.data[i].logit);
    }
    double sum = 0;
    int32_t left = 0;
    for (size_t i = 0; i < tokens.size; i++) {
        sum += std::exp((double) tokens.data[i].logit - max);
        left += tokens.data[i].logit > -INFINITY;
    }
    write(left);
    for (size_t i = 0; i < tokens.size; i++) {
        const llama_token_data & t = tokens.data[i];
        if (t.logit > -INFINITY) {
            write(t.id);
            write(std::exp((double) t.logit - max) / sum);
        }
    }
    return true;
}

int main() {
    while (answer()) {
    }
}
