#include "jinja_limit.h"

#include <algorithm>
#include <stdexcept>

namespace b3 {

//
// Renderings
//

// Most of llama.cpp's templates take up to 250 for each byte of the conversation.
// Some look back from each message, so that 1,000 short ones take 5,000.
static constexpr int64_t least_work = int64_t(1) << 26;
static constexpr int64_t most_work = int64_t(1) << 32;  // some 10 seconds
static constexpr int64_t work_per_byte = 50'000;
static constexpr size_t  step_work = 64;

// A step needs less than 1 KB of stack, a tag of the longest kind 2 MB.
static constexpr ptrdiff_t max_stack = ptrdiff_t(1) << 20;

static thread_local budget * current_budget = nullptr;

budget::budget(size_t size)
    : left(std::min(most_work, least_work + work_per_byte * int64_t(size))),
      base(static_cast<const char *>(__builtin_frame_address(0))),
      outer(current_budget) {
    current_budget = this;
}

budget::~budget() { current_budget = outer; }

budget * budget::current() { return current_budget; }

void budget::spend(size_t work) {
    left -= int64_t(work);
    if (left < 0) {
        throw template_error("the template takes too long for this conversation");
    }
}

void budget::check_stack() const {
    if (base - static_cast<const char *>(__builtin_frame_address(0)) > max_stack) {
        throw template_error("macros call each other too deeply");
    }
}

void work(size_t bytes) {
    if (budget * b = budget::current()) {
        b->spend(bytes);
    }
}

void step() {
    if (budget * b = budget::current()) {
        b->spend(step_work);
        b->check_stack();
    }
}

//
// Sources
//

// The templates of llama.cpp's collection stay below a tenth of each limit.
static constexpr size_t max_source = 1 << 20;  // bytes
static constexpr int    max_tag = 5000;        // tokens in one tag
static constexpr int    max_nesting = 64;      // brackets, blocks, or prefix operators
static constexpr int    max_branches = 1000;   // elif

namespace {

// A nesting counts what is open at a place of a template.
class nesting {
  public:
    void read(const jinja::token & t) {
        using token = jinja::token;
        const bool first = opened;  // in a {% tag
        opened = t.t == token::open_statement;
        if (opened || t.t == token::open_expression) {
            tag = brackets = prefixes = 0;
        }
        tag++;
        setting = setting && t.t != token::equals;
        if (t.t == token::close_statement) {
            blocks += setting;  // {% set name %} is a block, {% set name = value %} is none
            setting = false;
        }
        brackets += is_bracket(t, token::open_paren, token::open_square_bracket, token::open_curly_bracket);
        brackets -= is_bracket(t, token::close_paren, token::close_square_bracket, token::close_curly_bracket);
        const bool prefix = t.t == token::unary_operator || (t.t == token::identifier && t.value == "not");
        prefixes = prefix ? prefixes + 1 : 0;
        if (first && t.t == token::identifier) {
            block(t.value);
        }
    }

    bool too_deep() const {
        return tag > max_tag || brackets > max_nesting || prefixes > max_nesting || blocks > max_nesting || branches > max_branches;
    }

  private:
    int  tag = 0, brackets = 0, prefixes = 0, blocks = 0, branches = 0;
    bool opened = false, setting = false;

    static bool is_bracket(const jinja::token & t, jinja::token::type a, jinja::token::type b, jinja::token::type c) {
        return t.t == a || t.t == b || t.t == c;
    }

    void block(const std::string & name) {
        branches += name == "elif";
        setting = name == "set";
        blocks += name == "if" || name == "for" || name == "macro" || name == "call" || name == "filter";
        blocks -= name == "endif" || name == "endfor" || name == "endmacro" || name == "endcall" || name == "endfilter" || name == "endset";
    }
};

}  // namespace

void check_source(const std::string & source) {
    if (source.size() > max_source) {
        throw std::runtime_error("the template has more than 1 MB");
    }
    nesting      open;
    jinja::lexer lexer;
    for (const auto & t : lexer.tokenize(source).tokens) {
        open.read(t);
        if (open.too_deep()) {
            throw std::runtime_error("the template has too deep a nesting");
        }
    }
}

}  // namespace b3
