#include "jinja_text.h"

#include <algorithm>
#include <stdexcept>

#include "jinja_limit.h"

namespace b3 {

// A template that doubles a string in a loop must not take the machine's memory.
static constexpr size_t max_text = size_t(1) << 28;

void add(text & to, std::string_view s, bool input) {
    if (s.empty()) {
        return;
    }
    const bool   joins = !to.parts.empty() && to.parts.back().is_input == input;
    const size_t before = joins ? to.parts.back().val.size() : 0;
    if (before + s.size() > max_text) {
        throw std::runtime_error("the text grows too long");
    }
    if (joins) {
        work(s.size());
        to.parts.back().val.append(s);
    } else {
        work(s.size() + sizeof(jinja::string_part));
        to.parts.push_back({input, std::string(s)});
    }
}

void append(text & to, const text & s) {
    for (const auto & part : s.parts) {
        add(to, part.val, part.is_input);
    }
}

text cut(const text & s, size_t from, size_t to) {
    text   out;
    size_t at = 0;
    for (const auto & part : s.parts) {
        const size_t a = std::max(from, at), b = std::min(to, at + part.val.size());
        if (a < b) {
            add(out, std::string_view(part.val).substr(a - at, b - a), part.is_input);
        }
        at += part.val.size();
        if (at >= to) {
            break;
        }
    }
    return out;
}

std::string flat(const text & s) {
    work(s.length());
    return s.str();
}

// like gives new bytes, as many as s has, the marks of s.
static text like(const text & s, const std::string & bytes) {
    text   out;
    size_t at = 0;
    for (const auto & part : s.parts) {
        add(out, std::string_view(bytes).substr(at, part.val.size()), part.is_input);
        at += part.val.size();
    }
    return out;
}

character character_at(std::string_view s, size_t i) {
    const auto byte = [&](size_t k) { return i + k < s.size() ? uint8_t(s[i + k]) : 0u; };
    const auto tail = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
    const uint32_t b = byte(0);
    if (b >= 0xC2 && b < 0xE0 && tail(1)) {
        return {(b & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    }
    if (b >= 0xE0 && b < 0xF0 && tail(1) && tail(2)) {
        return {(b & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
    }
    if (b >= 0xF0 && b < 0xF5 && tail(1) && tail(2) && tail(3)) {
        return {(b & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
    }
    return {b, 1};
}

void add_utf8(std::string & to, uint32_t c) {
    const auto tail = [&](int shift) { to += char(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) {
        to += char(c);
    } else if (c < 0x800) {
        to += char(0xC0 | c >> 6);
        tail(0);
    } else if (c < 0x10000) {
        to += char(0xE0 | c >> 12);
        tail(6);
        tail(0);
    } else {
        to += char(0xF0 | c >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

// character_before is the last character that ends at byte i.
static character character_before(std::string_view s, size_t i) {
    for (size_t n = 4; n > 1; n--) {
        if (n <= i && character_at(s, i - n).size == n) {
            return character_at(s, i - n);
        }
    }
    return {uint8_t(s[i - 1]), 1};
}

bool is_blank(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// is_line_end is where str.splitlines breaks.
static bool is_line_end(uint32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// starts are the byte positions of the characters, and the end.
static std::vector<size_t> starts(const std::string & s) {
    std::vector<size_t> out;
    for (size_t i = 0; i < s.size(); i += character_at(s, i).size) {
        out.push_back(i);
    }
    out.push_back(s.size());
    return out;
}

size_t length(const text & s) {
    return starts(flat(s)).size() - 1;
}

text slice(const text & s, int64_t start, int64_t stop, int64_t step) {
    const auto at = starts(flat(s));
    text       out;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
        append(out, cut(s, at[i], at[i + 1]));
    }
    return out;
}

std::vector<text> characters(const text & s) {
    const auto        at = starts(flat(s));
    std::vector<text> out;
    for (size_t i = 0; i + 1 < at.size(); i++) {
        out.push_back(cut(s, at[i], at[i + 1]));
    }
    return out;
}

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static char to_upper(char c) { return is_lower(c) ? char(c - 'a' + 'A') : c; }
static char to_lower(char c) { return is_upper(c) ? char(c - 'A' + 'a') : c; }

text upper(const text & s) {
    std::string b = flat(s);
    std::transform(b.begin(), b.end(), b.begin(), to_upper);
    return like(s, b);
}

text lower(const text & s) {
    std::string b = flat(s);
    std::transform(b.begin(), b.end(), b.begin(), to_lower);
    return like(s, b);
}

text title(const text & s) {
    std::string b = flat(s);
    bool in_word = false;
    for (char & c : b) {
        const bool letter = is_upper(c) || is_lower(c) || uint8_t(c) >= 0x80;
        c = in_word ? to_lower(c) : to_upper(c);
        in_word = letter;
    }
    return like(s, b);
}

text capitalize(const text & s) {
    std::string b = flat(s);
    std::transform(b.begin(), b.end(), b.begin(), to_lower);
    if (!b.empty()) {
        b[0] = to_upper(b[0]);
    }
    return like(s, b);
}

text strip(const text & s, bool left, bool right, const std::string * chars) {
    const std::string b = flat(s);
    const auto        goes = [&](size_t at, character c) {
        return chars == nullptr ? is_blank(c.code) : chars->find(b.substr(at, c.size)) != std::string::npos;
    };
    size_t from = 0, to = b.size();
    while (left && from < to) {
        const auto c = character_at(b, from);
        if (!goes(from, c)) {
            break;
        }
        from += c.size;
    }
    while (right && to > from) {
        const auto c = character_before(b, to);
        if (!goes(to - c.size, c)) {
            break;
        }
        to -= c.size;
    }
    return cut(s, from, to);
}

// at_borders cuts s at ranges that lie in order.
static std::vector<text> at_borders(const text & s, const std::vector<std::pair<size_t, size_t>> & gaps, size_t from, size_t end) {
    std::vector<text> out;
    for (const auto & gap : gaps) {
        out.push_back(cut(s, from, gap.first));
        from = gap.second;
    }
    out.push_back(cut(s, from, end));
    return out;
}

std::vector<text> split(const text & s, const std::string & separator, int64_t limit, bool right) {
    if (separator.empty()) {
        throw std::runtime_error("empty separator");
    }
    const std::string                      b = flat(s);
    std::vector<std::pair<size_t, size_t>> gaps;
    const auto full = [&] { return limit >= 0 && int64_t(gaps.size()) >= limit; };
    if (!right) {
        for (size_t at = 0; !full() && (at = b.find(separator, at)) != std::string::npos; at += separator.size()) {
            gaps.push_back({at, at + separator.size()});
        }
    } else {
        for (size_t end = b.size(); !full() && end >= separator.size();) {
            const size_t at = b.rfind(separator, end - separator.size());
            if (at == std::string::npos) {
                break;
            }
            gaps.push_back({at, at + separator.size()});
            end = at;
        }
        std::reverse(gaps.begin(), gaps.end());
    }
    return at_borders(s, gaps, 0, b.size());
}

std::vector<text> split_blank(const text & s) {
    const std::string b = flat(s);
    std::vector<text> out;
    size_t            word = std::string::npos;  // where the current word starts
    for (size_t i = 0; i < b.size();) {
        const auto c = character_at(b, i);
        if (!is_blank(c.code)) {
            word = std::min(word, i);
        } else if (word != std::string::npos) {
            out.push_back(cut(s, word, i));
            word = std::string::npos;
        }
        i += c.size;
    }
    if (word != std::string::npos) {
        out.push_back(cut(s, word, b.size()));
    }
    return out;
}

std::vector<text> lines(const text & s) {
    const std::string b = flat(s);
    std::vector<text> out;
    size_t            from = 0;
    for (size_t i = 0; i < b.size();) {
        const auto c = character_at(b, i);
        i += c.size;
        if (is_line_end(c.code)) {
            out.push_back(cut(s, from, i - c.size));
            if (c.code == '\r' && i < b.size() && b[i] == '\n') {
                i++;
            }
            from = i;
        }
    }
    if (from < b.size()) {
        out.push_back(cut(s, from, b.size()));
    }
    return out;
}

text replace(const text & s, const std::string & old, const text & with, int64_t limit) {
    if (old.empty()) {
        auto pieces = characters(s);
        pieces.insert(pieces.begin(), text());
        pieces.push_back(text());
        return join(pieces, with);
    }
    return join(split(s, old, limit, false), with);
}

text join(const std::vector<text> & parts, const text & separator) {
    text out;
    for (size_t i = 0; i < parts.size(); i++) {
        if (i > 0) {
            append(out, separator);
        }
        append(out, parts[i]);
    }
    return out;
}

}  // namespace b3
