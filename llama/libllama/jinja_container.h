// The lists, tuples and objects that templates make. A template can nest them
// without end; the engine's own are let go one inside of the other, which takes the
// stack, and ours one after the other.
#pragma once

#include <vector>

#include "jinja_engine.h"

namespace b3 {

using jinja::is_val;
using jinja::mk_val;
using jinja::value;

struct list : jinja::value_array_t {
    explicit list(std::vector<value> && items) { val_arr = std::move(items); }
    ~list() override;
};

// A tuple may be a key, whose hash the engine takes by recursion, so they are
// nested to some depth only.
struct tuple : jinja::value_tuple_t {
    int depth;
    explicit tuple(std::vector<value> && items);
    ~tuple() override;
};

struct dict : jinja::value_object_t {
    using jinja::value_object_t::value_object_t;
    ~dict() override;
};

value new_list(std::vector<value> items);
value new_tuple(std::vector<value> items);

// A loop_state is the variable loop.
struct loop_state : jinja::value_object_t {
    std::vector<value> items;
    size_t             turn = 0;
    explicit loop_state(std::vector<value> && items) : items(std::move(items)) { has_builtins = false; }
    bool  as_bool() const override { return true; }
    value get(const std::string & name) const;  // undefined if there is no such member
};

// adopted is v, or ours in its place if it is a list or object of the engine's that
// nothing else refers to.
value adopted(value v);

// items_of is what a loop over v goes through.
std::vector<value> items_of(const value & v);
// pairs_of are the names and values of an object as tuples (dict.items).
std::vector<value> pairs_of(const value & v);

}  // namespace b3
