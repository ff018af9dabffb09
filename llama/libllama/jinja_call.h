// What templates call: methods, filters, tests, and the engine's own functions.
#pragma once

#include "jinja_limit.h"
#include "jinja_value.h"

namespace b3 {

// Arguments are what stands in the parentheses of a call.
struct arguments {
    std::vector<value>                         positional;
    std::vector<std::pair<std::string, value>> named;

    // get is an argument by place or name; undefined when it is not given.
    value get(size_t place, const char * name) const;
    bool  given(size_t place, const char * name) const { return !get(place, name)->is_undefined(); }
};

arguments evaluate(const jinja::statements & expressions, jinja::context & ctx);

// integer is an argument that may be left out.
int64_t integer(const value & v, int64_t otherwise);
// string_of throws for what is no string.
const text & string_of(const value & v, const char * what);

// call_builtin calls one of the engine's own functions, with self as the first
// argument.
value call_builtin(const jinja::func_handler & function, const std::string & name, jinja::context & ctx, const value & self, const arguments & args);

// apply_filter is {{ self|name(args) }}, in jinja_filter.cpp.
value apply_filter(const std::string & name, jinja::context & ctx, const value & self, const arguments & args);

// run_test is {{ self is name(args) }}.
bool run_test(const std::string & name, jinja::context & ctx, const value & self, const arguments & args);

// call_method calls self.name(args) if we have such a method, in jinja_method.cpp.
bool call_method(const std::string & name, const value & self, const arguments & args, value & result);

// has_methods tells dictionaries from namespaces.
bool has_methods(const value & v);

// note keeps the books by which the engine learns what a template looks at
// (jinja::caps_get): that it used a value, and how.
void note(jinja::context & ctx, const value & used, const std::string & how);

// member is self.name: a method, a member, or undefined.
value member(const value & self, const std::string & name);

}  // namespace b3
