// Chat templates: common/chat behind flat arrays. Texts are given and returned
// as bytes and sizes, without a NUL.
#pragma once

#include "shim.h"

#ifdef __cplusplus
extern "C" {
#endif

// b3_model_bos_eos gives llama_vocab_bos and llama_vocab_eos, which templates
// print; -1 where the vocabulary has none.
void b3_model_bos_eos(const struct llama_model * model, int32_t * bos, int32_t * eos);

// A b3_template is a parsed chat template. Any number of threads may use it.
typedef struct b3_template b3_template;

// What a template can express (jinja::caps).
enum {
    B3_CAP_SYSTEM         = 1 << 0,
    B3_CAP_TOOLS          = 1 << 1,
    B3_CAP_CALLS          = 1 << 2,
    B3_CAP_PARALLEL       = 1 << 3,
    B3_CAP_STRING_CONTENT = 1 << 4,
    B3_CAP_PARTS_CONTENT  = 1 << 5,
    B3_CAP_OBJECT_ARGS    = 1 << 6,
};

// b3_template_new parses a Jinja source. text holds the source, the text of BOS
// and the text of EOS end to end.
int  b3_template_new(const char * text, const size_t sizes[3], b3_template ** out, uint32_t * caps, b3_error * err);
void b3_template_free(b3_template * t);

// The texts that b3_template_render takes, end to end.
enum {
    B3_IN_MESSAGES,  // JSON array
    B3_IN_TOOLS,     // JSON array, may be empty
    B3_IN_NUMBER,    // JSON strings that start with this are numbers that fit no C type
    B3_IN_DATE,      // date_string
    B3_IN_DATETIME,  // datetime
    B3_IN_ZONE,      // name of the time zone
    B3_IN_COUNT,
};

// Whether the answer's parser knows calls (enum common_chat_tool_choice).
enum {
    B3_CHOICE_AUTO,
    B3_CHOICE_REQUIRED,
    B3_CHOICE_NONE,
};

typedef struct b3_render_params {
    int64_t time;        // seconds since 1970
    int32_t zone;        // seconds east of UTC
    int32_t thinking;    // enable_thinking
    int32_t generation;  // add_generation_prompt
    int32_t choice;      // B3_CHOICE_
    int32_t parallel;    // parallel_tool_calls
} b3_render_params;

// A b3_rendering is a prompt and what common_chat_params says of the answer.
// text holds, end to end: the prompt, the generation prompt, the serialized
// parser, the start of the thinking, then its ends, the stops, the preserved
// tokens and the triggers of calls that are words. inputs are the ranges of the
// prompt's bytes that come from the request: pairs of start and end.
typedef struct b3_rendering {
    const char *   text;
    const size_t * sizes;
    size_t         ends, stops, preserved, triggers;
    int32_t        format;  // enum common_chat_format: how b3_answer_parse reads the answer
    const size_t * inputs;
    size_t         ranges;
} b3_rendering;

int  b3_template_render(const b3_template * t, const char * text, const size_t sizes[B3_IN_COUNT], const b3_render_params * p, b3_rendering ** out, b3_error * err);
void b3_rendering_free(b3_rendering * r);

// The texts that b3_answer_parse takes, end to end.
enum {
    B3_ANSWER_PARSER,      // serialized
    B3_ANSWER_GENERATION,  // the generation prompt
    B3_ANSWER_TEXT,
    B3_ANSWER_COUNT,
};

// A b3_answer is a parsed answer. text holds, end to end: content, reasoning, then
// name, arguments and id of each call.
typedef struct b3_answer {
    const char *   text;
    const size_t * sizes;
    size_t         calls;
} b3_answer;

// b3_answer_parse is common_chat_peg_parse for a whole answer.
int  b3_answer_parse(const char * text, const size_t sizes[B3_ANSWER_COUNT], int32_t format, b3_answer ** out, b3_error * err);
void b3_answer_free(b3_answer * a);

#ifdef __cplusplus
}
#endif
