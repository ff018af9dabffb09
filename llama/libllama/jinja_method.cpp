// Methods of strings, as Python has them.
#include <algorithm>
#include <map>

#include "jinja_call.h"

namespace b3 {

static value new_texts(const std::vector<text> & texts) {
    std::vector<value> items;
    items.reserve(texts.size());
    for (const auto & t : texts) {
        items.push_back(new_text(t));
    }
    return new_list(std::move(items));
}

using method = value (*)(const text & self, const arguments & args);

template <bool left, bool right> static value strip_method(const text & self, const arguments & args) {
    const value chars = args.get(0, "chars");
    if (chars->is_undefined() || chars->is_none()) {
        return new_text(strip(self, left, right, nullptr));
    }
    const std::string set = flat(string_of(chars, "the characters to strip"));
    return new_text(strip(self, left, right, &set));
}

template <bool right> static value split_method(const text & self, const arguments & args) {
    const value   separator = args.get(0, "sep");
    const int64_t limit = integer(args.get(1, "maxsplit"), -1);
    if (separator->is_undefined() || separator->is_none()) {
        if (limit >= 0) {
            throw std::runtime_error("split() at blanks has no limit here");
        }
        return new_texts(split_blank(self));
    }
    return new_texts(split(self, flat(string_of(separator, "a separator")), limit, right));
}

static bool matches(const std::string & s, const std::string & part, bool at_end) {
    return s.size() >= part.size() && s.compare(at_end ? s.size() - part.size() : 0, part.size(), part) == 0;
}

template <bool at_end> static value affix_method(const text & self, const arguments & args) {
    const value       affix = args.get(0, "prefix");
    const std::string s = flat(self);
    const auto        test = [&](const value & v) { return matches(s, flat(string_of(v, "a prefix or suffix")), at_end); };
    if (is_val<jinja::value_array>(affix)) {
        const auto & all = affix->as_array();
        return mk_val<jinja::value_bool>(std::any_of(all.begin(), all.end(), test));
    }
    return mk_val<jinja::value_bool>(test(affix));
}

template <bool at_end> static value remove_affix(const text & self, const arguments & args) {
    const std::string affix = flat(string_of(args.get(0, "prefix"), "a prefix or suffix"));
    const size_t      n = self.length();
    if (!matches(flat(self), affix, at_end)) {
        return new_text(self);
    }
    return new_text(at_end ? cut(self, 0, n - affix.size()) : cut(self, affix.size(), n));
}

static value replace_method(const text & self, const arguments & args) {
    const std::string old = flat(to_text(args.get(0, "old")));
    return new_text(replace(self, old, to_text(args.get(1, "new")), integer(args.get(2, "count"), -1)));
}

// format_method is str.format with {}, {0} and {name}, without conversions.
static value format_method(const text & self, const arguments & args) {
    const std::string s = flat(self);
    text              out;
    size_t            next = 0, from = 0;
    for (size_t i = 0; i < s.size(); i++) {
        if (s[i] != '{' && s[i] != '}') {
            continue;
        }
        append(out, cut(self, from, i));
        if (i + 1 < s.size() && s[i + 1] == s[i]) {  // {{ and }} are one each
            from = ++i;
            continue;
        }
        const size_t end = s.find('}', i);
        if (s[i] == '}' || end == std::string::npos) {
            throw std::runtime_error("single brace in a format string");
        }
        const std::string field = s.substr(i + 1, end - i - 1);
        const bool        place = field.find_first_not_of("0123456789") == std::string::npos && field.size() < 4;
        const value       v = !place ? args.get(size_t(-1), field.c_str())
                                     : args.get(field.empty() ? next++ : size_t(std::stoi(field)), "");
        if (v->is_undefined()) {
            throw std::runtime_error("nothing to put for {" + field + "} in a format string");
        }
        append(out, to_text(v));
        i = end;
        from = end + 1;
    }
    append(out, cut(self, from, s.size()));
    return new_text(out);
}

static const std::map<std::string, method> & string_methods() {
    static const std::map<std::string, method> methods = {
        {"upper", [](const text & s, const arguments &) { return new_text(upper(s)); }},
        {"lower", [](const text & s, const arguments &) { return new_text(lower(s)); }},
        {"title", [](const text & s, const arguments &) { return new_text(title(s)); }},
        {"capitalize", [](const text & s, const arguments &) { return new_text(capitalize(s)); }},
        {"strip", strip_method<true, true>},
        {"lstrip", strip_method<true, false>},
        {"rstrip", strip_method<false, true>},
        {"split", split_method<false>},
        {"rsplit", split_method<true>},
        {"splitlines", [](const text & s, const arguments &) { return new_texts(lines(s)); }},
        {"startswith", affix_method<false>},
        {"endswith", affix_method<true>},
        {"removeprefix", remove_affix<false>},
        {"removesuffix", remove_affix<true>},
        {"replace", replace_method},
        {"format", format_method},
    };
    return methods;
}

bool call_method(const std::string & name, const value & self, const arguments & args, value & result) {
    if (name == "items" && has_methods(self)) {
        result = new_list(pairs_of(self));
        return true;
    }
    if (!is_val<jinja::value_string>(self)) {
        return false;
    }
    const auto it = string_methods().find(name);
    if (it == string_methods().end()) {
        return false;
    }
    result = it->second(self->val_str, args);
    return true;
}

}  // namespace b3
