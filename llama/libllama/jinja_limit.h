// Limits of what a rendering may take. Templates come with models, and
// conversations from clients: neither may keep the server busy without end or
// overflow the stack, which would end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "jinja_engine.h"

namespace b3 {

// A template_error is what a template itself refuses a conversation with
// (raise_exception), or a limit. The engine lets it pass without a trace of its own.
struct template_error : jinja::rethrown_exception {
    using jinja::rethrown_exception::rethrown_exception;
};

// A budget is what the calling thread may spend on one rendering: work, and room
// on the stack. Without one there are no limits.
class budget {
    int64_t      left;
    const char * base;  // the stack where the rendering began
    budget *     outer;

  public:
    // size is that of the conversation or template, in bytes.
    explicit budget(size_t size);
    ~budget();
    budget(const budget &) = delete;
    budget & operator=(const budget &) = delete;

    static budget * current();
    void            spend(size_t work);
    void            check_stack() const;
};

// work counts bytes that are copied, read or allocated; it throws when a
// template does not come to an end.
void work(size_t bytes);

// step counts one call, turn of a loop or operation.
void step();

// check_source throws when a template is so deeply nested that the parser or
// the engine, which recurse, could overflow the stack.
void check_source(const std::string & source);

}  // namespace b3
