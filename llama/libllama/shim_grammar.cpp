// llama.cpp's grammars, for tests.

#include "shim_grammar.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "llama.h"
#include "shim_guard.h"
#include "shim_log.h"

namespace {

struct free_sampler {
    void operator()(llama_sampler * s) const { llama_sampler_free(s); }
};
using sampler = std::unique_ptr<llama_sampler, free_sampler>;

// allows tells whether a token is in the mask.
bool allows(llama_sampler * s, llama_token token) {
    llama_token_data       candidate{token, 0.0f, 0.0f};
    llama_token_data_array candidates{&candidate, 1, -1, false};
    llama_sampler_apply(s, &candidates);
    return !std::isinf(candidate.logit);
}

// accepts tells whether the grammar goes on with a token.
bool accepts(llama_sampler * s, llama_token token) {
    try {
        llama_sampler_accept(s, token);
    } catch (const std::runtime_error &) {  // "Unexpected empty grammar stack"
        return false;
    }
    return true;
}

uint8_t verdict(llama_sampler * s, const int32_t byte_tokens[256], int32_t end, const std::string & text, std::chrono::milliseconds most) {
    const auto start = std::chrono::steady_clock::now();
    bool       masked = false;
    for (const char c : text) {
        if (std::chrono::steady_clock::now() - start > most) {
            return B3_TEXT_LATE;
        }
        const auto        byte = static_cast<uint8_t>(c);
        const llama_token token = byte_tokens[byte];
        const bool        allowed = allows(s, token);
        masked = masked || !allowed;
        if ((!allowed && byte < 0x80) || !accepts(s, token)) {
            return B3_TEXT_REFUSED;
        }
    }
    if (!allows(s, end)) {
        return B3_TEXT_REFUSED;
    }
    return masked ? B3_TEXT_MASKED : B3_TEXT_ACCEPTED;
}

}  // namespace

int b3_grammar_read(const llama_model * model, const char * gbnf, const int32_t byte_tokens[256], int32_t end,
                    const char * text, const size_t * sizes, size_t count, int32_t milliseconds, uint8_t * verdicts, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        const sampler  start(llama_sampler_init_grammar(llama_model_get_vocab(model), gbnf, "root"));
        if (start == nullptr) {
            b3::set_error(err, errors.reason("llama_sampler_init_grammar failed"));
            return (int) B3_FAILED;
        }
        for (size_t i = 0; i < count; i++) {
            const sampler s(llama_sampler_clone(start.get()));
            verdicts[i] = verdict(s.get(), byte_tokens, end, std::string(text, sizes[i]), std::chrono::milliseconds(milliseconds));
            text += sizes[i];
        }
        return (int) B3_OK;
    });
}
