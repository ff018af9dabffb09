// A plain llama.cpp loop, the measure of what package libllama computes: reads
// prompts from stdin, one a line, as token ids, and prints for each the N
// likeliest tokens that follow.
//
//	plain MODEL N < prompts

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

static llama_token likeliest(llama_context * ctx, int32_t n_vocab) {
    const float * logits = llama_get_logits_ith(ctx, -1);
    llama_token best = 0;
    for (llama_token t = 1; t < n_vocab; t++) {
        if (logits[t] > logits[best]) {
            best = t;
        }
    }
    return best;
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        return 2;
    }
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (model == nullptr) {
        return 1;
    }
    llama_context_params params = llama_context_default_params();
    params.n_ctx           = 1024;
    params.n_batch         = 256;
    params.n_ubatch        = 128;
    params.n_threads       = 1;
    params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    llama_context * ctx = llama_init_from_model(model, params);
    if (ctx == nullptr) {
        return 1;
    }
    const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));

    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream       in(line);
        std::vector<llama_token> tokens;
        for (llama_token t; in >> t;) {
            tokens.push_back(t);
        }
        llama_memory_clear(llama_get_memory(ctx), true);
        for (int i = 0; i < atoi(argv[2]); i++) {
            if (llama_decode(ctx, llama_batch_get_one(tokens.data(), (int32_t) tokens.size())) != 0) {
                return 1;
            }
            tokens.assign(1, likeliest(ctx, n_vocab));
            printf("%d ", tokens[0]);
        }
        printf("\n");
    }
    llama_free(ctx);
    llama_model_free(model);
}
