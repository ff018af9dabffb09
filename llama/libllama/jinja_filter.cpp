// Filters, as Jinja2 has them.
#include <algorithm>
#include <map>

#include "jinja_call.h"

namespace b3 {

using jinja::context;

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
        style.item = flat(to_text(separators->as_array()[0]));
        style.key = flat(to_text(separators->as_array()[1]));
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

static value list_filter(context &, const value & self, const arguments &) {
    return new_list(items_of(self));
}

// attribute_of is what the attribute argument of filters picks: "a.b" is item.a.b.
static value attribute_of(const value & item, const value & attribute) {
    if (attribute->is_undefined() || attribute->is_none()) {
        return item;
    }
    value none = undefined(), v = item;
    if (is_val<jinja::value_int>(attribute)) {
        return is_val<jinja::value_array>(item) ? item->at(attribute->as_int(), none) : none;
    }
    for (const auto & name : split(string_of(attribute, "an attribute"), ".", -1, false)) {
        v = is_val<jinja::value_object>(v) ? v->at(new_text(name), none) : none;
    }
    return v;
}

static value first_filter(context &, const value & self, const arguments &) {
    const auto items = items_of(self);
    return items.empty() ? undefined() : items.front();
}

static value last_filter(context &, const value & self, const arguments &) {
    const auto items = items_of(self);
    return items.empty() ? undefined() : items.back();
}

static value items_filter(context &, const value & self, const arguments &) {
    return new_list(self->is_undefined() ? std::vector<value>() : pairs_of(self));
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
    const bool by_value = args.given(1, "by") && flat(to_text(args.get(1, "by"))) == "value";
    const bool reverse = args.given(2, "reverse") && args.get(2, "reverse")->as_bool();
    auto       members = self->as_ordered_object();
    std::stable_sort(members.begin(), members.end(), [&](const auto & a, const auto & b) {
        const value & x = by_value ? a.second : a.first;
        const value & y = by_value ? b.second : b.first;
        return reverse ? less(y, x, fold) : less(x, y, fold);
    });
    std::vector<value> items;
    for (const auto & m : members) {
        items.push_back(new_tuple({m.first, m.second}));
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

// lazy_items is items_of for the filters that are generators in Jinja2, which take
// whatever is false for nothing.
static std::vector<value> lazy_items(const value & v) {
    return v->as_bool() ? items_of(v) : std::vector<value>();
}

static value map_filter(context & ctx, const value & self, const arguments & args) {
    std::vector<value> items;
    if (args.positional.empty()) {
        const value attribute = args.get(0, "attribute"), otherwise = args.get(1, "default");
        for (const auto & item : lazy_items(self)) {
            const value v = attribute_of(item, attribute);
            items.push_back(v->is_undefined() ? otherwise : v);
        }
        return new_list(std::move(items));
    }
    arguments         rest = args;
    const std::string name = flat(string_of(args.positional[0], "a filter's name"));
    rest.positional.erase(rest.positional.begin());
    for (const auto & item : lazy_items(self)) {
        items.push_back(apply_filter(name, ctx, item, rest));
    }
    return new_list(std::move(items));
}

// select_filter is the four filters that keep the items for which a test, of
// themselves or of an attribute, gives keep.
template <bool of_attribute, bool keep>
static value select_filter(context & ctx, const value & self, const arguments & args) {
    arguments rest = args;
    value     attribute = undefined(), test = undefined();
    for (value * v : {of_attribute ? &attribute : nullptr, &test}) {
        if (v != nullptr && !rest.positional.empty()) {
            *v = rest.positional.front();
            rest.positional.erase(rest.positional.begin());
        }
    }
    std::vector<value> kept;
    for (const auto & item : lazy_items(self)) {
        const value v = attribute_of(item, attribute);
        const bool  passes = test->is_undefined() ? v->as_bool() : run_test(flat(string_of(test, "a test's name")), ctx, v, rest);
        if (passes == keep) {
            kept.push_back(item);
        }
    }
    return new_list(std::move(kept));
}

static const std::map<std::string, filter> & filters() {
    static const std::map<std::string, filter> all = {
        {"tojson", tojson_filter},
        {"default", default_filter},
        {"d", default_filter},
        {"length", length_filter},
        {"count", length_filter},
        {"list", list_filter},
        {"first", first_filter},
        {"last", last_filter},
        {"items", items_filter},
        {"join", join_filter},
        {"indent", indent_filter},
        {"sort", sort_filter},
        {"dictsort", dictsort_filter},
        {"unique", unique_filter},
        {"map", map_filter},
        {"select", select_filter<false, true>},
        {"reject", select_filter<false, false>},
        {"selectattr", select_filter<true, true>},
        {"rejectattr", select_filter<true, false>},
        {"safe", safe_filter},
        {"string", string_filter},
    };
    return all;
}

// method_filters are the filters that do what a string's method does, for
// values of any kind.
static const std::map<std::string, std::string> & method_filters() {
    static const std::map<std::string, std::string> all = {
        {"trim", "strip"},   {"strip", "strip"},           {"upper", "upper"},     {"lower", "lower"},
        {"title", "title"}, {"capitalize", "capitalize"}, {"replace", "replace"},
    };
    return all;
}

value apply_filter(const std::string & name, context & ctx, const value & self, const arguments & args) {
    step();
    note(ctx, self, name);
    if (ctx.is_get_stats && (name == "tojson" || name == "string")) {
        check_depth(self);  // mark_used recurses
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
    const auto & functions = self->get_builtins();
    if (const auto it = functions.find(name); it != functions.end()) {
        return call_builtin(it->second, name, ctx, self, args);
    }
    if (call_method(name, self, args, result)) {
        return result;
    }
    throw std::runtime_error("No filter named '" + name + "' for " + self->type());
}

}  // namespace b3
