#include "jinja_call.h"

#include <algorithm>
#include <map>

namespace b3 {

using jinja::context;

static value undefined() {
    return mk_val<jinja::value_undefined>();
}

static value new_list(std::vector<value> items) {
    return mk_val<jinja::value_array>(std::move(items));
}

static value new_list(const std::vector<text> & texts) {
    std::vector<value> items;
    items.reserve(texts.size());
    for (const auto & t : texts) {
        items.push_back(new_text(t));
    }
    return new_list(std::move(items));
}

//
// Arguments
//

value arguments::get(size_t place, const char * name) const {
    for (const auto & [key, v] : named) {
        if (key == name) {
            return v;
        }
    }
    return place < positional.size() ? positional[place] : undefined();
}

arguments evaluate(const jinja::statements & expressions, context & ctx) {
    arguments out;
    for (const auto & e : expressions) {
        value v = e->execute(ctx);
        if (auto * named = jinja::cast_val<jinja::value_kwarg>(v)) {
            out.named.push_back({named->key, named->val});
        } else {
            out.positional.push_back(std::move(v));
        }
    }
    return out;
}

static int64_t integer(const value & v, int64_t otherwise) {
    return is_val<jinja::value_int>(v) || is_val<jinja::value_bool>(v) ? v->as_int() : otherwise;
}

static const text & string_of(const value & v, const char * what) {
    if (!is_val<jinja::value_string>(v)) {
        throw std::runtime_error(std::string(what) + " must be a string, not " + v->type());
    }
    return v->val_str;
}

value call_builtin(const jinja::func_handler & function, const std::string & name, context & ctx, const value * self, const arguments & args) {
    jinja::func_args all(ctx);
    all.func_name = name;
    if (self != nullptr) {
        all.push_back(*self);
    }
    for (const auto & a : args.positional) {
        all.push_back(a);
    }
    for (const auto & [key, v] : args.named) {
        all.push_back(mk_val<jinja::value_kwarg>(key, v));
    }
    value result = function(all);
    // What these functions make of a string has lost its marks.
    if (self != nullptr && has_input(*self) && is_val<jinja::value_string>(result) && result != *self) {
        result = new_text(result->val_str);
        result->val_str.mark_input();
    }
    return result;
}

//
// Methods of strings
//

using method = value (*)(const text & self, const arguments & args);

template <bool left, bool right> static value strip_method(const text & self, const arguments & args) {
    const value chars = args.get(0, "chars");
    if (chars->is_undefined() || chars->is_none()) {
        return new_text(strip(self, left, right, nullptr));
    }
    const std::string set = string_of(chars, "the characters to strip").str();
    return new_text(strip(self, left, right, &set));
}

template <bool right> static value split_method(const text & self, const arguments & args) {
    const value   separator = args.get(0, "sep");
    const int64_t limit = integer(args.get(1, "maxsplit"), -1);
    if (separator->is_undefined() || separator->is_none()) {
        if (limit >= 0) {
            throw std::runtime_error("split() at blanks has no limit here");
        }
        return new_list(split_blank(self));
    }
    return new_list(split(self, string_of(separator, "a separator").str(), limit, right));
}

static bool matches(const std::string & s, const std::string & part, bool at_end) {
    return s.size() >= part.size() && s.compare(at_end ? s.size() - part.size() : 0, part.size(), part) == 0;
}

template <bool at_end> static value affix_method(const text & self, const arguments & args) {
    const value       affix = args.get(0, "prefix");
    const std::string s = self.str();
    const auto        test = [&](const value & v) { return matches(s, string_of(v, "a prefix or suffix").str(), at_end); };
    if (is_val<jinja::value_array>(affix)) {
        const auto & all = affix->as_array();
        return mk_val<jinja::value_bool>(std::any_of(all.begin(), all.end(), test));
    }
    return mk_val<jinja::value_bool>(test(affix));
}

template <bool at_end> static value remove_affix(const text & self, const arguments & args) {
    const std::string affix = string_of(args.get(0, "prefix"), "a prefix or suffix").str();
    const size_t      n = self.length();
    if (!matches(self.str(), affix, at_end)) {
        return new_text(self);
    }
    return new_text(at_end ? cut(self, 0, n - affix.size()) : cut(self, affix.size(), n));
}

static value replace_method(const text & self, const arguments & args) {
    const std::string old = to_text(args.get(0, "old")).str();
    return new_text(replace(self, old, to_text(args.get(1, "new")), integer(args.get(2, "count"), -1)));
}

// format_method is str.format with {}, {0} and {name}, without conversions.
static value format_method(const text & self, const arguments & args) {
    const std::string s = self.str();
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
        {"splitlines", [](const text & s, const arguments &) { return new_list(lines(s)); }},
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

//
// Members
//

void note(context & ctx, const value & used, const std::string & how) {
    if (ctx.is_get_stats) {
        used->stats.used = true;
        if (!how.empty()) {
            used->stats.ops.insert(how);
        }
    }
}

// is_method tells which names Python's dict and list take for methods, of those
// that the engine has. Its other functions are filters, which are no members.
static bool is_method(const value & self, const std::string & name) {
    if (is_val<jinja::value_object>(self)) {
        return name == "get" || name == "keys" || name == "values" || name == "items";
    }
    return name == "append" || name == "pop";
}

value member(const value & self, const std::string & name) {
    if (self->is_undefined() || self->is_none()) {
        return undefined();
    }
    const auto & object = is_val<jinja::value_object>(self);
    if ((object || is_val<jinja::value_array>(self)) && is_method(self, name)) {
        const auto & functions = self->get_builtins();
        if (const auto it = functions.find(name); it != functions.end()) {
            return mk_val<jinja::value_func>(name, it->second, self);
        }
    }
    value none = undefined();
    return object ? self->at(name, none) : none;
}

//
// Filters
//

using filter = value (*)(context & ctx, const value & self, const arguments & args);

static value tojson_filter(context &, const value & self, const arguments & args) {
    json_style  style;
    const value indent = args.get(1, "indent"), separators = args.get(2, "separators");
    style.ascii = args.get(0, "ensure_ascii")->is_undefined() ? false : args.get(0, "ensure_ascii")->as_bool();
    style.sorted = args.get(3, "sort_keys")->is_undefined() ? false : args.get(3, "sort_keys")->as_bool();
    if (is_val<jinja::value_int>(indent)) {
        style.indent = int(std::clamp<int64_t>(indent->as_int(), 0, 64));
        style.item = ",";
    }
    if (is_val<jinja::value_array>(separators) && separators->as_array().size() == 2) {
        style.item = to_text(separators->as_array()[0]).str();
        style.key = to_text(separators->as_array()[1]).str();
    }
    return new_text(to_json(self, style));
}

static value default_filter(context &, const value & self, const arguments & args) {
    const value any = args.get(1, "boolean");
    const bool  empty = self->is_undefined() || (!any->is_undefined() && any->as_bool() && !self->as_bool());
    if (!empty) {
        return self;
    }
    return args.given(0, "default_value") ? args.get(0, "default_value") : new_text(text());
}

static value length_filter(context &, const value & self, const arguments &) {
    if (is_val<jinja::value_string>(self)) {
        return mk_val<jinja::value_int>(int64_t(length(self->val_str)));
    }
    if (is_val<jinja::value_array>(self)) {
        return mk_val<jinja::value_int>(int64_t(self->as_array().size()));
    }
    if (is_val<jinja::value_object>(self)) {
        return mk_val<jinja::value_int>(int64_t(self->as_ordered_object().size()));
    }
    if (self->is_undefined()) {
        return mk_val<jinja::value_int>(0);
    }
    throw std::runtime_error("object of type '" + self->type() + "' has no len()");
}

std::vector<value> items_of(const value & v) {
    std::vector<value> items;
    if (is_val<jinja::value_array>(v)) {
        return v->as_array();
    }
    if (is_val<jinja::value_string>(v)) {
        for (auto & c : characters(v->val_str)) {
            items.push_back(new_text(std::move(c)));
        }
    } else if (is_val<jinja::value_object>(v)) {
        for (const auto & m : v->as_ordered_object()) {
            items.push_back(m.first);
        }
    } else if (!v->is_undefined()) {
        throw std::runtime_error("'" + v->type() + "' object is not iterable");
    }
    return items;
}

static value list_filter(context &, const value & self, const arguments &) {
    return new_list(items_of(self));
}

// attribute_of is what the attribute argument of filters picks.
static value attribute_of(const value & item, const value & attribute) {
    if (attribute->is_undefined() || attribute->is_none()) {
        return item;
    }
    value none = undefined();
    if (is_val<jinja::value_int>(attribute)) {
        return is_val<jinja::value_array>(item) ? item->at(attribute->as_int(), none) : none;
    }
    return is_val<jinja::value_object>(item) ? item->at(attribute, none) : none;
}

static value join_filter(context &, const value & self, const arguments & args) {
    std::vector<text> parts;
    for (const auto & item : items_of(self)) {
        parts.push_back(to_text(attribute_of(item, args.get(1, "attribute"))));
    }
    return new_text(join(parts, to_text(args.get(0, "d"))));
}

static value indent_filter(context &, const value & self, const arguments & args) {
    const value width = args.get(0, "width");
    const bool  first = args.given(1, "first") && args.get(1, "first")->as_bool();
    const bool  blank = args.given(2, "blank") && args.get(2, "blank")->as_bool();
    const text  indention = is_val<jinja::value_string>(width)
                                ? width->val_str
                                : text(std::string(size_t(std::clamp<int64_t>(integer(width, 4), 0, 1024)), ' '));
    text all = string_of(self, "what is indented");
    add(all, "\n");  // so that a line end at the end is kept
    text out;
    bool start = true;
    for (const auto & line : lines(all)) {
        if (!start) {
            add(out, "\n");
        }
        if (start ? first : blank || line.length() > 0) {
            append(out, indention);
        }
        append(out, line);
        start = false;
    }
    return new_text(out);
}

static value sort_filter(context &, const value & self, const arguments & args) {
    const bool  reverse = args.given(0, "reverse") && args.get(0, "reverse")->as_bool();
    const bool  fold = !args.given(1, "case_sensitive") || !args.get(1, "case_sensitive")->as_bool();
    const value attribute = args.get(2, "attribute");
    auto        items = items_of(self);
    std::stable_sort(items.begin(), items.end(), [&](const value & a, const value & b) {
        const value x = attribute_of(a, attribute), y = attribute_of(b, attribute);
        return reverse ? less(y, x, fold) : less(x, y, fold);
    });
    return new_list(std::move(items));
}

static value dictsort_filter(context &, const value & self, const arguments & args) {
    const bool fold = !args.given(0, "case_sensitive") || !args.get(0, "case_sensitive")->as_bool();
    const bool by_value = args.given(1, "by") && to_text(args.get(1, "by")).str() == "value";
    const bool reverse = args.given(2, "reverse") && args.get(2, "reverse")->as_bool();
    auto       members = self->as_ordered_object();
    std::stable_sort(members.begin(), members.end(), [&](const auto & a, const auto & b) {
        const value & x = by_value ? a.second : a.first;
        const value & y = by_value ? b.second : b.first;
        return reverse ? less(y, x, fold) : less(x, y, fold);
    });
    std::vector<value> items;
    for (const auto & m : members) {
        items.push_back(mk_val<jinja::value_tuple>(m));
    }
    return new_list(std::move(items));
}

static value unique_filter(context &, const value & self, const arguments & args) {
    const bool         fold = !args.given(0, "case_sensitive") || !args.get(0, "case_sensitive")->as_bool();
    std::vector<value> kept, keys;
    for (const auto & item : items_of(self)) {
        value key = attribute_of(item, args.get(1, "attribute"));
        if (fold && is_val<jinja::value_string>(key)) {
            key = new_text(lower(key->val_str));
        }
        if (std::none_of(keys.begin(), keys.end(), [&](const value & k) { return equal(k, key); })) {
            keys.push_back(key);
            kept.push_back(item);
        }
    }
    return new_list(std::move(kept));
}

static value safe_filter(context &, const value & self, const arguments &) {
    return is_val<jinja::value_string>(self) ? self : new_text(to_text(self));
}

static value string_filter(context &, const value & self, const arguments &) {
    return new_text(to_text(self));
}

static const std::map<std::string, filter> & filters() {
    static const std::map<std::string, filter> all = {
        {"tojson", tojson_filter},   {"default", default_filter},   {"d", default_filter},
        {"length", length_filter},   {"count", length_filter},      {"list", list_filter},
        {"join", join_filter},       {"indent", indent_filter},     {"sort", sort_filter},
        {"dictsort", dictsort_filter}, {"unique", unique_filter},   {"safe", safe_filter},
        {"string", string_filter},
    };
    return all;
}

// method_filters are the filters that do what a string's method does, for
// values of any kind.
static const std::map<std::string, std::string> & method_filters() {
    static const std::map<std::string, std::string> all = {
        {"trim", "strip"}, {"strip", "strip"},           {"upper", "upper"},     {"lower", "lower"},
        {"title", "title"}, {"capitalize", "capitalize"}, {"replace", "replace"},
    };
    return all;
}

static value map_filter(context & ctx, const value & self, const arguments & args) {
    arguments rest = args;
    rest.positional.erase(rest.positional.begin());
    std::vector<value> items;
    for (const auto & item : items_of(self)) {
        items.push_back(apply_filter(to_text(args.positional[0]).str(), ctx, item, rest));
    }
    return new_list(std::move(items));
}

value apply_filter(const std::string & name, context & ctx, const value & self, const arguments & args) {
    step();
    note(ctx, self, name);
    if (ctx.is_get_stats && (name == "tojson" || name == "string")) {
        value all = self;
        jinja::value_t::stats_t::mark_used(all, true);
    }
    if (const auto it = filters().find(name); it != filters().end()) {
        return it->second(ctx, self, args);
    }
    value result;
    if (const auto it = method_filters().find(name); it != method_filters().end()) {
        call_method(it->second, new_text(to_text(self)), args, result);
        return result;
    }
    if (name == "map" && !args.positional.empty()) {
        return map_filter(ctx, self, args);
    }
    const auto & functions = self->get_builtins();
    if (const auto it = functions.find(name); it != functions.end()) {
        return call_builtin(it->second, name, ctx, &self, args);
    }
    if (call_method(name, self, args, result)) {
        return result;
    }
    throw std::runtime_error("No filter named '" + name + "' for " + self->type());
}

}  // namespace b3
