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
#include <string>

#include "jinja_value.h"

namespace b3 {

// A run is one conversation for which the calling thread renders; common/chat does so
// several times. Runs may be nested: the inner one counts.
struct run {
    size_t      size;    // of the conversation, in bytes
    std::tm     now{};   // what strftime_now prints
    std::string number;  // texts that start with it are numbers that fit no C type

    // The first text that was rendered, and of what: common/chat renders the same
    // again to find the generation prompt.
    bool  rendered = false;
    text  first;
    value messages, tools;
    bool  generation = false;

    explicit run(size_t size);
    ~run();
    run(const run &) = delete;
    run & operator=(const run &) = delete;

    // current is the calling thread's. There always is one when templates are
    // rendered.
    static run & current();

  private:
    run * outer;
};

// make_exact rewrites a parsed template in place.
void make_exact(jinja::program & program);

}  // namespace b3
