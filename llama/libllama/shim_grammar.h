// The grammars of llama.cpp, for tests alone: package grammar's GBNF is held
// against them. Nothing of it is used by the server, which has its own masks.
#pragma once

#include "shim.h"

#ifdef __cplusplus
extern "C" {
#endif

// What llama.cpp says of a text.
enum {
    B3_TEXT_REFUSED,
    B3_TEXT_ACCEPTED,
    B3_TEXT_MASKED, // accepted, but the mask refuses a byte of a longer character
    B3_TEXT_LATE,   // it took too long
};

// b3_grammar_read reads texts with a grammar (llama_sampler_init_grammar), whose
// start is the rule root. A text is given as tokens of one byte each, byte_tokens;
// count texts of sizes bytes lie end to end. It is accepted if each token is, and
// the token end, of an end of generation, is in the mask behind it. No text takes
// longer than milliseconds by more than its slowest byte. B3_FAILED: llama.cpp
// refuses the grammar.
int b3_grammar_read(const struct llama_model * model, const char * gbnf, const int32_t byte_tokens[256], int32_t end,
                    const char * text, const size_t * sizes, size_t count, int32_t milliseconds, uint8_t * verdicts, b3_error * err);

#ifdef __cplusplus
}
#endif
