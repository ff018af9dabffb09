// Text that knows which of its bytes came from a request, and Python's str
// methods on it. The type is llama.cpp's jinja::string: parts that are each of
// the template or of an input. Its own methods lose the marks when they cut,
// and count bytes where Python counts characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jinja_engine.h"

namespace b3 {

using text = jinja::string;

// add and append throw when the result would be absurdly long.
void add(text & to, std::string_view s, bool input = false);
void append(text & to, const text & s);

// flat is the bytes alone. All that goes through a text counts as work.
std::string flat(const text & s);

// cut is the bytes from to to.
text cut(const text & s, size_t from, size_t to);

// length counts characters (len).
size_t length(const text & s);
// slice is s[start:stop:step] by characters; bounds are as Python clips them.
text slice(const text & s, int64_t start, int64_t stop, int64_t step);
// characters are the pieces of one character each.
std::vector<text> characters(const text & s);

text upper(const text & s);      // of ASCII letters, as all of these four
text lower(const text & s);
text title(const text & s);
text capitalize(const text & s);

// strip cuts blanks, or any of the given characters, from the ends.
text strip(const text & s, bool left, bool right, const std::string * chars);

// split is str.split and, from the right, str.rsplit. A negative limit means
// none. split_blank splits at runs of blanks.
std::vector<text> split(const text & s, const std::string & separator, int64_t limit, bool right);
std::vector<text> split_blank(const text & s);
// lines is str.splitlines.
std::vector<text> lines(const text & s);

text replace(const text & s, const std::string & old, const text & with, int64_t limit);
text join(const std::vector<text> & parts, const text & separator);

// A character of UTF-8 text; malformed bytes count as characters of their own.
struct character {
    uint32_t code;
    size_t   size;
};
character character_at(std::string_view s, size_t i);
bool      is_blank(uint32_t code);  // str.isspace
void      add_utf8(std::string & to, uint32_t code);

}  // namespace b3
