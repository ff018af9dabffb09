#include "jinja_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "jinja_limit.h"

namespace b3 {

// Lists that contain themselves must end somewhere.
static constexpr int max_depth = 256;

// deeper is a step into a value.
static void deeper(int depth) {
    step();
    if (depth > max_depth) {
        throw std::runtime_error("a value is nested too deeply");
    }
}

static void check_depth_at(const value & v, int depth) {
    deeper(depth);
    for (const auto & item : v->val_arr) {
        check_depth_at(item, depth + 1);
    }
    for (const auto & member : v->val_obj) {
        check_depth_at(member.second, depth + 1);
    }
}

void check_depth(const value & v) { check_depth_at(v, 0); }

wide_number::wide_number(const std::string & digits)
    : jinja::value_float_t(std::strtod(digits.c_str(), nullptr)), literal(digits) {}

value new_text(text t) {
    work(sizeof(jinja::value_string_t));
    return mk_val<jinja::value_string>(std::move(t));
}

value undefined() {
    return mk_val<jinja::value_undefined>();
}

bool has_input(const value & v) {
    if (!is_val<jinja::value_string>(v)) {
        return false;
    }
    const auto & parts = v->val_str.parts;
    return std::any_of(parts.begin(), parts.end(), [](const auto & p) { return p.is_input && !p.val.empty(); });
}

// float_text is repr of a Python float: the shortest digits that give the same
// number, with an exponent below -4 and from 16.
static std::string float_text(double x) {
    if (std::isnan(x)) {
        return "nan";
    }
    if (std::isinf(x)) {
        return x < 0 ? "-inf" : "inf";
    }
    char              buf[32];
    const auto        end = std::to_chars(buf, buf + sizeof buf, std::fabs(x), std::chars_format::scientific).ptr;
    const std::string all(buf, end);
    const size_t      e = all.find('e');
    const int         exponent = std::atoi(all.c_str() + e + 1);
    std::string       digits = all.substr(0, 1) + (e > 2 ? all.substr(2, e - 2) : "");

    std::string out = std::signbit(x) ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        char power[16];
        std::snprintf(power, sizeof power, "e%+03d", exponent);
        return out + digits.substr(0, 1) + (digits.size() > 1 ? "." + digits.substr(1) : "") + power;
    }
    if (exponent < 0) {
        return out + "0." + std::string(-exponent - 1, '0') + digits;
    }
    if (int(digits.size()) < exponent + 2) {
        digits.append(exponent + 2 - digits.size(), '0');
    }
    return out + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

// number_text is a number as str prints it; json.dumps has other words for the
// three that JSON lacks.
static std::string number_text(const value & v, bool json) {
    if (is_val<jinja::value_int>(v)) {
        return std::to_string(v->as_int());
    }
    const auto * wide = dynamic_cast<const wide_number *>(v.get());
    const auto   s = wide ? wide->literal : float_text(v->as_float());
    if (s == "inf" || s == "-inf") {
        return json ? (s[0] == '-' ? "-Infinity" : "Infinity") : s;
    }
    return json && s == "nan" ? "NaN" : s;
}

static bool is_number(const value & v) {
    return is_val<jinja::value_int>(v) || is_val<jinja::value_float>(v);
}

//
// JSON
//

static void add_escaped(std::string & to, uint32_t unit) {
    char buf[12];
    std::snprintf(buf, sizeof buf, "\\u%04x", unsigned(unit));
    to += buf;
}

static std::string json_escape(const std::string & s, bool ascii) {
    std::string out;
    out.reserve(s.size());
    for (size_t i = 0; i < s.size();) {
        const auto c = character_at(s, i);
        switch (c.code) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\b': out += "\\b"; break;
            case '\f': out += "\\f"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            default:
                if (c.code < 0x20 || (ascii && c.code >= 0x7F && c.code < 0x10000)) {
                    add_escaped(out, c.code);
                } else if (ascii && c.code >= 0x10000) {
                    add_escaped(out, 0xD800 + ((c.code - 0x10000) >> 10));
                    add_escaped(out, 0xDC00 + ((c.code - 0x10000) & 0x3FF));
                } else {
                    out.append(s, i, c.size);
                }
        }
        i += c.size;
    }
    return out;
}

static void json_string(text & out, const text & s, bool ascii) {
    add(out, "\"");
    for (const auto & part : s.parts) {
        add(out, json_escape(part.val, ascii), part.is_input);
    }
    add(out, "\"");
}

using pairs = std::vector<std::pair<value, value>>;

static pairs sorted_pairs(pairs p) {
    std::stable_sort(p.begin(), p.end(), [](const auto & a, const auto & b) {
        return flat(to_text(a.first)) < flat(to_text(b.first));
    });
    return p;
}

static void json_value(text & out, const value & v, const json_style & style, int depth);

static void json_newline(text & out, const json_style & style, int depth) {
    if (style.indent >= 0) {
        add(out, "\n" + std::string(size_t(style.indent) * depth, ' '));
    }
}

static void json_object(text & out, const value & v, const json_style & style, int depth) {
    const auto & members = v->as_ordered_object();
    add(out, "{");
    bool first = true;
    for (const auto & [key, item] : style.sorted ? sorted_pairs(members) : members) {
        if (!first) {
            add(out, style.item);
        }
        first = false;
        json_newline(out, style, depth + 1);
        if (is_val<jinja::value_string>(key)) {
            json_string(out, key->val_str, style.ascii);
        } else {
            json_string(out, to_json(key, style), style.ascii);
        }
        add(out, style.key);
        json_value(out, item, style, depth + 1);
    }
    if (!first) {
        json_newline(out, style, depth);
    }
    add(out, "}");
}

static void json_array(text & out, const value & v, const json_style & style, int depth) {
    add(out, "[");
    bool first = true;
    for (const auto & item : v->as_array()) {
        if (!first) {
            add(out, style.item);
        }
        first = false;
        json_newline(out, style, depth + 1);
        json_value(out, item, style, depth + 1);
    }
    if (!first) {
        json_newline(out, style, depth);
    }
    add(out, "]");
}

static void json_value(text & out, const value & v, const json_style & style, int depth) {
    deeper(depth);
    if (is_val<jinja::value_string>(v)) {
        json_string(out, v->val_str, style.ascii);
    } else if (is_val<jinja::value_bool>(v)) {
        add(out, v->as_bool() ? "true" : "false");
    } else if (is_number(v)) {
        add(out, number_text(v, true));
    } else if (is_val<jinja::value_array>(v)) {
        json_array(out, v, style, depth);
    } else if (is_val<jinja::value_object>(v)) {
        json_object(out, v, style, depth);
    } else if (v->is_none()) {
        add(out, "null");
    } else {
        throw std::runtime_error("Object of type " + v->type() + " is not JSON serializable");
    }
}

text to_json(const value & v, const json_style & style) {
    text out;
    json_value(out, v, style, 0);
    return out;
}

//
// str and repr
//

// is_printable is str.isprintable without the unassigned characters.
static bool is_printable(uint32_t c) {
    return !(c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || (is_blank(c) && c != ' ') ||
             (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) ||
             (c >= 0xD800 && c <= 0xF8FF) || c == 0xFEFF || (c >= 0xFDD0 && c <= 0xFDEF) ||
             (c >= 0xFFF0 && c <= 0xFFFB) || (c & 0xFFFE) == 0xFFFE || c >= 0xE0000);
}

static std::string repr_escape(const std::string & s, char quote) {
    std::string out;
    for (size_t i = 0; i < s.size();) {
        const auto c = character_at(s, i);
        char       buf[12];
        if (c.code == uint32_t(quote) || c.code == '\\') {
            out += '\\';
            out += char(c.code);
        } else if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
            out += c.code == '\n' ? "\\n" : c.code == '\r' ? "\\r" : "\\t";
        } else if (is_printable(c.code)) {
            out.append(s, i, c.size);
        } else {
            std::snprintf(buf, sizeof buf, c.code < 0x100 ? "\\x%02x" : c.code < 0x10000 ? "\\u%04x" : "\\U%08x", unsigned(c.code));
            out += buf;
        }
        i += c.size;
    }
    return out;
}

static void repr_string(text & out, const text & s) {
    const std::string all = flat(s);
    const bool        single = all.find('\'') == std::string::npos || all.find('"') != std::string::npos;
    const char        quote = single ? '\'' : '"';
    add(out, std::string(1, quote));
    for (const auto & part : s.parts) {
        add(out, repr_escape(part.val, quote), part.is_input);
    }
    add(out, std::string(1, quote));
}

static void repr_value(text & out, const value & v, int depth);

static void repr_array(text & out, const value & v, int depth) {
    const bool   tuple = v->is_immutable();
    const auto & items = v->as_array();
    add(out, tuple ? "(" : "[");
    for (size_t i = 0; i < items.size(); i++) {
        add(out, i > 0 ? ", " : "");
        repr_value(out, items[i], depth + 1);
    }
    add(out, tuple ? (items.size() == 1 ? ",)" : ")") : "]");
}

static void repr_object(text & out, const value & v, int depth) {
    bool first = true;
    add(out, "{");
    for (const auto & [key, item] : v->as_ordered_object()) {
        add(out, first ? "" : ", ");
        first = false;
        repr_value(out, key, depth + 1);
        add(out, ": ");
        repr_value(out, item, depth + 1);
    }
    add(out, "}");
}

static void repr_value(text & out, const value & v, int depth) {
    deeper(depth);
    if (is_val<jinja::value_string>(v)) {
        repr_string(out, v->val_str);
    } else if (is_val<jinja::value_array>(v)) {
        repr_array(out, v, depth);
    } else if (is_val<jinja::value_object>(v)) {
        repr_object(out, v, depth);
    } else if (v->is_undefined()) {
        add(out, "Undefined");
    } else {
        append(out, to_text(v));
    }
}

text repr(const value & v) {
    text out;
    repr_value(out, v, 0);
    return out;
}

text to_text(const value & v) {
    if (is_val<jinja::value_string>(v)) {
        return v->val_str;
    }
    if (v->is_undefined()) {
        return text();
    }
    if (v->is_none()) {
        return text("None");
    }
    if (is_val<jinja::value_bool>(v)) {
        return text(v->as_bool() ? "True" : "False");
    }
    if (is_number(v)) {
        return text(number_text(v, false));
    }
    if (is_val<jinja::value_array>(v) || is_val<jinja::value_object>(v)) {
        return repr(v);
    }
    return text("<" + v->type() + ">");  // a function
}

//
// Comparing
//

// as_number is what Python compares numbers and booleans by.
static bool as_number(const value & v, double & out) {
    if (is_val<jinja::value_bool>(v)) {
        out = v->as_bool();
        return true;
    }
    if (is_number(v)) {
        out = is_val<jinja::value_int>(v) ? double(v->as_int()) : v->as_float();
        return true;
    }
    return false;
}

static bool equal_at(const value & a, const value & b, int depth);

static bool equal_arrays(const value & a, const value & b, int depth) {
    const auto & x = a->as_array();
    const auto & y = b->as_array();
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [&](const value & p, const value & q) {
        return equal_at(p, q, depth + 1);
    });
}

static bool equal_objects(const value & a, const value & b, int depth) {
    const auto & members = a->as_ordered_object();
    return members.size() == b->as_ordered_object().size() && std::all_of(members.begin(), members.end(), [&](const auto & m) {
        return b->has_key(m.first) && equal_at(m.second, b->at(m.first), depth + 1);
    });
}

static bool equal_at(const value & a, const value & b, int depth) {
    deeper(depth);
    if (is_val<jinja::value_string>(a) || is_val<jinja::value_string>(b)) {
        return is_val<jinja::value_string>(a) && is_val<jinja::value_string>(b) && flat(a->val_str) == flat(b->val_str);
    }
    double x, y;
    if (is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b)) {
        return a->as_int() == b->as_int();
    }
    if (as_number(a, x) && as_number(b, y)) {
        return x == y;
    }
    if (is_val<jinja::value_array>(a) && is_val<jinja::value_array>(b)) {
        return a->is_immutable() == b->is_immutable() && equal_arrays(a, b, depth);
    }
    if (is_val<jinja::value_object>(a) && is_val<jinja::value_object>(b)) {
        return equal_objects(a, b, depth);
    }
    return (a->is_none() && b->is_none()) || (a->is_undefined() && b->is_undefined()) || a.get() == b.get();
}

bool equal(const value & a, const value & b) {
    return equal_at(a, b, 0);
}

bool contains(const value & haystack, const value & needle) {
    if (haystack->is_undefined()) {
        return false;
    }
    if (is_val<jinja::value_array>(haystack)) {
        const auto & items = haystack->as_array();
        return std::any_of(items.begin(), items.end(), [&](const value & item) { return equal(item, needle); });
    }
    if (is_val<jinja::value_object>(haystack)) {
        return haystack->has_key(needle);
    }
    if (is_val<jinja::value_string>(haystack) && is_val<jinja::value_string>(needle)) {
        return flat(haystack->val_str).find(flat(needle->val_str)) != std::string::npos;
    }
    throw std::runtime_error("'in' cannot look for " + needle->type() + " in " + haystack->type());
}

static bool less_at(const value & a, const value & b, bool fold, int depth) {
    deeper(depth);
    double x, y;
    if (is_val<jinja::value_string>(a) && is_val<jinja::value_string>(b)) {
        return fold ? flat(lower(a->val_str)) < flat(lower(b->val_str)) : flat(a->val_str) < flat(b->val_str);
    }
    if (as_number(a, x) && as_number(b, y)) {
        return x < y;
    }
    if (is_val<jinja::value_array>(a) && is_val<jinja::value_array>(b)) {
        const auto & p = a->as_array();
        const auto & q = b->as_array();
        return std::lexicographical_compare(p.begin(), p.end(), q.begin(), q.end(), [&](const value & i, const value & j) {
            return less_at(i, j, fold, depth + 1);
        });
    }
    throw std::runtime_error("'<' not supported between " + a->type() + " and " + b->type());
}

bool less(const value & a, const value & b, bool fold) {
    return less_at(a, b, fold, 0);
}

}  // namespace b3
