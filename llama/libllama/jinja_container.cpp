#include "jinja_container.h"

#include <algorithm>
#include <stdexcept>
#include <typeinfo>

#include "jinja_limit.h"
#include "jinja_text.h"

namespace b3 {

static constexpr int max_tuples = 64;

// let_go takes what a container holds out of it and lets go of it, and of what that
// holds in turn, without recursion.
static void let_go(jinja::value_t & container) {
    static thread_local std::vector<value> fallen;
    static thread_local bool               falling = false;
    for (auto & item : container.val_arr) {
        fallen.push_back(std::move(item));
    }
    for (auto & [key, item] : container.val_obj) {
        fallen.push_back(std::move(item));
    }
    if (falling) {
        return;
    }
    falling = true;
    while (!fallen.empty()) {
        const value last = std::move(fallen.back());
        fallen.pop_back();
    }
    falling = false;
}

list::~list() { let_go(*this); }

tuple::~tuple() { let_go(*this); }

dict::~dict() {
    unordered.clear();  // it refers to the same values as val_obj
    let_go(*this);
}

static int depth_of(const value & v) {
    if (const auto * t = dynamic_cast<const tuple *>(v.get())) {
        return t->depth;
    }
    int depth = 0;
    if (is_val<jinja::value_tuple>(v)) {
        for (const auto & item : v->val_arr) {
            depth = std::max(depth, depth_of(item));
        }
        depth++;
    }
    return depth;
}

tuple::tuple(std::vector<value> && items) : jinja::value_tuple_t(std::vector<value>()), depth(1) {
    for (const auto & item : items) {
        depth = std::max(depth, depth_of(item) + 1);
    }
    if (depth > max_tuples) {
        throw std::runtime_error("tuples are nested too deeply");
    }
    val_arr = std::move(items);
}

value new_list(std::vector<value> items) {
    work(sizeof(list) + items.size() * sizeof(value));
    return mk_val<list>(std::move(items));
}

value new_tuple(std::vector<value> items) {
    work(sizeof(tuple) + items.size() * sizeof(value));
    return mk_val<tuple>(std::move(items));
}

value loop_state::get(const std::string & name) const {
    const size_t n = items.size();
    if (name == "first" || name == "last") {
        return mk_val<jinja::value_bool>(name == "first" ? turn == 0 : turn + 1 == n);
    }
    if (name == "previtem" || name == "nextitem") {
        const size_t i = name == "previtem" ? turn - 1 : turn + 1;  // wraps in the first turn
        return i < n ? items[i] : mk_val<jinja::value_undefined>(name);
    }
    const std::pair<const char *, size_t> numbers[] = {
        {"index", turn + 1}, {"index0", turn}, {"revindex", n - turn}, {"revindex0", n - turn - 1}, {"length", n},
    };
    for (const auto & [known, number] : numbers) {
        if (name == known) {
            return mk_val<jinja::value_int>(int64_t(number));
        }
    }
    return mk_val<jinja::value_undefined>(name);
}

value adopted(value v) {
    if (v.use_count() > 1) {
        return v;
    }
    auto & engines = *v;
    if (typeid(engines) == typeid(jinja::value_array_t)) {
        return new_list(std::move(v->val_arr));
    }
    if (typeid(engines) == typeid(jinja::value_tuple_t)) {
        return new_tuple(std::move(v->val_arr));
    }
    if (typeid(engines) == typeid(jinja::value_object_t)) {
        work(sizeof(dict));
        auto ours = mk_val<dict>();
        auto & theirs = static_cast<jinja::value_object_t &>(engines);
        ours->val_obj = std::move(theirs.val_obj);
        ours->unordered = std::move(theirs.unordered);
        return ours;
    }
    return v;
}

std::vector<value> items_of(const value & v) {
    std::vector<value> items;
    if (is_val<jinja::value_array>(v)) {
        items = v->as_array();
    } else if (is_val<jinja::value_string>(v)) {
        for (auto & c : characters(v->val_str)) {
            items.push_back(mk_val<jinja::value_string>(std::move(c)));
        }
    } else if (is_val<jinja::value_object>(v)) {
        for (const auto & m : v->as_ordered_object()) {
            items.push_back(m.first);
        }
    } else if (!v->is_undefined()) {
        throw std::runtime_error("'" + v->type() + "' object is not iterable");
    }
    work(items.size() * sizeof(value));
    return items;
}

std::vector<value> pairs_of(const value & v) {
    std::vector<value> pairs;
    for (const auto & [key, item] : v->as_ordered_object()) {
        pairs.push_back(new_tuple({key, item}));
    }
    return pairs;
}

}  // namespace b3
