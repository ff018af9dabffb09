// Jinja values as Python has them: how they print, as JSON and as text, and
// when they are equal. llama.cpp's engine prints numbers with six digits.
#pragma once

#include "jinja_container.h"
#include "jinja_text.h"

namespace b3 {

// A wide_number is a number of a request that fits no C type: an integer beyond
// 64 bits, or a float beyond the largest. Its literal is what Python prints.
struct wide_number : jinja::value_float_t {
    std::string literal;
    explicit wide_number(const std::string & digits);
    std::string type() const override { return "Number"; }
    text        as_string() const override { return literal; }
};

// A json_style is the arguments of json.dumps. indent below 0 means one line.
struct json_style {
    int         indent = -1;
    std::string item = ", ", key = ": ";
    bool        ascii = false, sorted = false;
};

text to_json(const value & v, const json_style & style);
text to_text(const value & v);  // str, and nothing for undefined
text repr(const value & v);

// equal is Python's ==.
bool equal(const value & a, const value & b);
// contains is Python's in. It throws where Python would, but not for undefined.
bool contains(const value & haystack, const value & needle);
// less orders as Python does, strings without regard to case if fold is set.
bool less(const value & a, const value & b, bool fold);

// check_depth throws for a list that contains itself, or nearly so.
void check_depth(const value & v);

value new_text(text t);
value undefined();
bool  has_input(const value & v);  // a string with a byte of a request

}  // namespace b3
