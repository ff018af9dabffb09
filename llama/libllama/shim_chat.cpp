#include "shim_chat.h"

#include <mutex>
#include <optional>

#include "jinja_exact.h"
#include "jinja_limit.h"
#include "shim_guard.h"

#pragma GCC visibility push(default)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "chat-auto-parser.h"
#include "chat-peg-parser.h"
#include "chat.h"
#include "log.h"
#pragma GCC diagnostic pop
#pragma GCC visibility pop

struct b3_template {
    common_chat_template tmpl;

    // The analysis of a template that common/chat has no parser of its own for.
    // It renders the template some thirty times, so it is made once.
    mutable std::once_flag                        once;
    mutable std::optional<autoparser::autoparser> analysis;

    b3_template(const std::string & source, const std::string & bos, const std::string & eos) : tmpl("", bos, eos) {
        jinja::lexer lexer;
        auto         tokens = lexer.tokenize(source);
        tmpl.prog = jinja::parse_from_tokens(tokens);
        tmpl.src = tokens.source;
        b3::make_exact(tmpl.prog);
        tmpl.caps = jinja::caps_get(tmpl.prog);
    }
};

namespace {

// A texts hands out texts that lie end to end.
struct texts {
    const char *   data;
    const size_t * sizes;

    std::string next() {
        const std::string s(data, *sizes);
        data += *sizes++;
        return s;
    }
};

// An owned is what C hands out: it owns what a B points to.
template <typename B> struct owned : B {
    std::string         bytes;
    std::vector<size_t> lengths, pairs;

    void take(const std::string & s) {
        bytes += s;
        lengths.push_back(s.size());
    }

    void point() {
        this->text = bytes.data();
        this->sizes = lengths.data();
    }
};

using rendering = owned<b3_rendering>;
using answer = owned<b3_answer>;

static_assert(int(COMMON_CHAT_TOOL_CHOICE_AUTO) == B3_CHOICE_AUTO && int(COMMON_CHAT_TOOL_CHOICE_REQUIRED) == B3_CHOICE_REQUIRED &&
              int(COMMON_CHAT_TOOL_CHOICE_NONE) == B3_CHOICE_NONE);

uint32_t caps_of(const jinja::caps & c) {
    return (c.supports_system_role ? B3_CAP_SYSTEM : 0) | (c.supports_tools ? B3_CAP_TOOLS : 0) |
           (c.supports_tool_calls ? B3_CAP_CALLS : 0) | (c.supports_parallel_tool_calls ? B3_CAP_PARALLEL : 0) |
           (c.supports_string_content ? B3_CAP_STRING_CONTENT : 0) | (c.supports_typed_content ? B3_CAP_PARTS_CONTENT : 0) |
           (c.supports_object_arguments ? B3_CAP_OBJECT_ARGS : 0);
}

// analysed is the template's analysis, or nothing where it fails.
const std::optional<autoparser::autoparser> & analysed(const b3_template & t) {
    std::call_once(t.once, [&] {
        b3::run own(t.tmpl.src.size());
        try {
            autoparser::autoparser a;
            a.analyze_template(t.tmpl);
            t.analysis = std::move(a);
        } catch (const std::exception &) {
            // The template can be rendered all the same; its answers are then text alone.
        }
    });
    return t.analysis;
}

// generic is common_chat_templates_apply for templates without a handler.
common_chat_params generic(const b3_template & t, const autoparser::generation_params & in) {
    const auto & analysis = analysed(t);
    if (!analysis) {
        common_chat_params out;
        out.prompt = common_chat_template_direct_apply(t.tmpl, in);
        out.generation_prompt = common_chat_template_generation_prompt(t.tmpl, in);
        return out;
    }
    auto out = autoparser::peg_generator::generate_parser(t.tmpl, in, *analysis);
    out.supports_thinking = analysis->reasoning.mode != autoparser::reasoning_mode::NONE;
    if (out.supports_thinking) {
        out.thinking_start_tag = b3::strip(b3::text(analysis->reasoning.start), true, true, nullptr).str();
        const auto end = b3::strip(b3::text(analysis->reasoning.end), true, true, nullptr).str();
        if (!end.empty()) {
            out.thinking_end_tags = {end};
        }
    }
    return out;
}

// name_thinking says what stands around the reasoning where a handler does not, as Muse
// Glimmer's: the literals beside it in the parser.
void name_thinking(common_chat_params & p) {
    if (!p.supports_thinking || !p.thinking_start_tag.empty() || !p.thinking_end_tags.empty() || p.parser.empty()) {
        return;
    }
    common_peg_arena parser;
    parser.load(p.parser);
    for (size_t id = 0; id < parser.size(); id++) {
        const auto * sequence = std::get_if<common_peg_sequence_parser>(&parser.get(id));
        for (size_t i = 1; sequence && i + 1 < sequence->children.size(); i++) {
            const auto & of = sequence->children;
            const auto * before = std::get_if<common_peg_literal_parser>(&parser.get(of[i - 1]));
            const auto * tag = std::get_if<common_peg_tag_parser>(&parser.get(of[i]));
            const auto * behind = std::get_if<common_peg_literal_parser>(&parser.get(of[i + 1]));
            if (before && tag && behind && tag->tag == common_chat_peg_builder::REASONING) {
                p.thinking_start_tag = before->literal;
                p.thinking_end_tags = {behind->literal};
                return;
            }
        }
    }
}

common_chat_params apply(const b3_template & t, autoparser::generation_params & in) {
    if (auto out = common_chat_try_specialized_template(t.tmpl, t.tmpl.source(), in)) {
        name_thinking(*out);
        return std::move(*out);
    }
    return generic(t, in);
}

autoparser::generation_params params_of(texts & in, const b3_render_params & p, b3::run & run) {
    autoparser::generation_params out;
    out.messages = json::parse(in.next());
    if (const std::string tools = in.next(); !tools.empty()) {
        out.tools = json::parse(tools);
    }
    run.number = in.next();
    out.extra_context = json::object();
    out.extra_context["date_string"] = in.next();
    out.extra_context["datetime"] = in.next();
    out.extra_context["preserve_reasoning"] = true;
    out.extra_context["add_generation_prompt"] = false;  // defined also where it is not true
    // The prompt is the same whatever the choice, the parser is not.
    out.tool_choice = static_cast<common_chat_tool_choice>(p.choice);
    out.parallel_tool_calls = p.parallel != 0;
    out.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    out.enable_thinking = p.thinking != 0;
    out.add_generation_prompt = p.generation != 0;
    out.is_inference = false;  // else gpt-oss's handler changes the end of a finished conversation
    return out;
}

void set_time(b3::run & run, const b3_render_params & p, const std::string & zone) {
    const std::time_t local = p.time + p.zone;
    gmtime_r(&local, &run.now);
    run.now.tm_gmtoff = p.zone;
    run.now.tm_zone = zone.c_str();
}

// add_ranges finds the inputs of the rendered text in the prompt. A handler may
// have changed the text in one place or added to its end.
void add_ranges(rendering & out, const b3::text & rendered, const std::string & prompt) {
    const std::string s = rendered.str();
    const size_t      least = std::min(s.size(), prompt.size());
    const size_t      head = std::mismatch(s.begin(), s.begin() + least, prompt.begin()).first - s.begin();
    size_t            tail = 0;
    while (tail < least - head && s[s.size() - 1 - tail] == prompt[prompt.size() - 1 - tail]) {
        tail++;
    }
    const auto place = [&](size_t at) {
        return at <= head ? at : at >= s.size() - tail ? prompt.size() - (s.size() - at) : head;
    };
    size_t at = 0;
    for (const auto & part : rendered.parts) {
        const size_t from = place(at), to = place(at + part.val.size());
        at += part.val.size();
        if (part.is_input && from < to) {
            out.pairs.insert(out.pairs.end(), {from, to});
        }
    }
}

// preserved_of is the texts that may be tokens of their own in an answer. common/chat
// leaves out what stands around Gemma 4's strings.
std::vector<std::string> preserved_of(const common_chat_params & p) {
    auto texts = p.preserved_tokens;
    if (p.format == COMMON_CHAT_FORMAT_PEG_GEMMA4) {
        texts.push_back("<|\"|>");
    }
    return texts;
}

std::unique_ptr<rendering> rendering_of(const common_chat_params & p, const b3::text & first) {
    auto out = std::make_unique<rendering>();
    add_ranges(*out, first, p.prompt);
    out->take(p.prompt);
    out->take(p.generation_prompt);
    out->take(p.parser);
    out->take(p.thinking_start_tag);
    const auto preserved = preserved_of(p);
    for (const auto * list : {&p.thinking_end_tags, &p.additional_stops, &preserved}) {
        for (const auto & s : *list) {
            out->take(s);
        }
    }
    out->triggers = 0;
    for (const auto & t : p.grammar_triggers) {
        if (t.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD) {
            out->take(t.value);
            out->triggers++;
        }
    }
    out->point();
    out->format = p.format;
    out->ends = p.thinking_end_tags.size();
    out->stops = p.additional_stops.size();
    out->preserved = preserved.size();
    out->inputs = out->pairs.data();
    out->ranges = out->pairs.size() / 2;
    return out;
}

}  // namespace

void b3_model_bos_eos(const struct llama_model * model, int32_t * bos, int32_t * eos) {
    const auto * vocab = llama_model_get_vocab(model);
    *bos = llama_vocab_bos(vocab);
    *eos = llama_vocab_eos(vocab);
}

int b3_template_new(const char * text, const size_t sizes[3], b3_template ** out, uint32_t * caps, b3_error * err) {
    return b3::guard(err, [&] {
        // common/chat logs each refusal, which is an error of the request here.
        static std::once_flag quiet;
        std::call_once(quiet, [] { common_log_pause(common_log_main()); });

        texts             in{text, sizes};
        const std::string source = in.next(), bos = in.next(), eos = in.next();
        b3::check_source(source);
        b3::run run(source.size());
        auto    t = std::make_unique<b3_template>(source, bos, eos);
        *caps = caps_of(t->tmpl.caps);
        *out = t.release();
        return B3_OK;
    });
}

void b3_template_free(b3_template * t) {
    delete t;
}

int b3_template_render(const b3_template * t, const char * text, const size_t sizes[B3_IN_COUNT], const b3_render_params * p, b3_rendering ** out, b3_error * err) {
    return b3::guard(err, [&] {
        texts             in{text, sizes};
        b3::run           run(sizes[B3_IN_MESSAGES] + sizes[B3_IN_TOOLS]);
        auto              params = params_of(in, *p, run);
        const std::string zone = in.next();
        set_time(run, *p, zone);
        const auto result = apply(*t, params);
        *out = rendering_of(result, run.first).release();
        return B3_OK;
    });
}

void b3_rendering_free(b3_rendering * r) {
    delete static_cast<rendering *>(r);
}

int b3_answer_parse(const char * text, const size_t sizes[B3_ANSWER_COUNT], int32_t format, b3_answer ** out, b3_error * err) {
    return b3::guard(err, [&] {
        texts                     in{text, sizes};
        common_chat_parser_params params;
        params.format = static_cast<common_chat_format>(format);
        params.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
        params.parser.load(in.next());
        params.generation_prompt = in.next();
        const auto message = common_chat_peg_parse(params.parser, in.next(), false, params);

        auto a = std::make_unique<answer>();
        a->take(message.content);
        a->take(message.reasoning_content);
        for (const auto & call : message.tool_calls) {
            a->take(call.name);
            a->take(call.arguments);
            a->take(call.id);
        }
        a->calls = message.tool_calls.size();
        a->point();
        *out = a.release();
        return B3_OK;
    });
}

void b3_answer_free(b3_answer * a) {
    delete static_cast<answer *>(a);
}
