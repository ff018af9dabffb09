// llama.cpp's Jinja engine made to render as Jinja2 does.
//
// Its parser and most of its values are used as they are. make_exact replaces
// the nodes of a parsed template that print, call, filter, loop and compare by
// nodes of ours, which keep to Python: numbers, None, lists and quotes print as
// they do there, strings are counted and cut by characters, lists compare.
// The nodes also keep the marks of text that comes from a request, and leave
// the rendered text with its marks in the run of the calling thread, since
// common/chat throws the marks away.
#pragma once

#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "jinja_value.h"

namespace b3 {

// A template_error is what a template itself refuses a conversation with
// (raise_exception). The engine lets it pass without a trace of its own.
struct template_error : jinja::rethrown_exception {
    using jinja::rethrown_exception::rethrown_exception;
};

// A run is one conversation being rendered by the calling thread; common/chat
// renders several times for it. One exists at a time per thread.
struct run {
    std::tm     now{};   // what strftime_now prints
    std::string number;  // texts that start with it are numbers that fit no C type

    // The first text that was rendered, and of what: common/chat renders the same
    // again to find the generation prompt.
    bool  rendered = false;
    text  first;
    value messages, tools;
    bool  generation = false;

    int     depth = 0;  // calls of macros inside of each other
    int64_t steps = 0;  // calls and turns of loops so far
    int64_t limit;      // and how many there may be

    // size is that of the conversation, in bytes.
    explicit run(size_t size);
    ~run();
    run(const run &) = delete;
    run & operator=(const run &) = delete;

    static run * current();
    // restart forgets what was rendered.
    void restart();
};

// step counts work. It throws when a template does not come to an end.
void step();

// check_source throws when a template is so deeply nested that the parser or
// the engine, which recurse, could overflow the stack.
void check_source(const std::string & source);

// make_exact rewrites a parsed template in place.
void make_exact(jinja::program & program);

}  // namespace b3
