#include "jinja_call.h"

namespace b3 {

using jinja::context;

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

int64_t integer(const value & v, int64_t otherwise) {
    return is_val<jinja::value_int>(v) || is_val<jinja::value_bool>(v) ? v->as_int() : otherwise;
}

const text & string_of(const value & v, const char * what) {
    if (!is_val<jinja::value_string>(v)) {
        throw std::runtime_error(std::string(what) + " must be a string, not " + v->type());
    }
    return v->val_str;
}

// size_of is how many bytes it takes to go through a value once, about.
static size_t size_of(const value & v) {
    return v->val_str.length() + (v->val_arr.size() + v->val_obj.size()) * sizeof(value);
}

value call_builtin(const jinja::func_handler & function, const std::string & name, context & ctx, const value & self, const arguments & args) {
    work(size_of(self));
    jinja::func_args all(ctx);
    all.func_name = name;
    all.push_back(self);
    for (const auto & a : args.positional) {
        all.push_back(a);
    }
    for (const auto & [key, v] : args.named) {
        all.push_back(mk_val<jinja::value_kwarg>(key, v));
    }
    value result = function(all);
    // What these functions make of a string has lost its marks.
    if (has_input(self) && is_val<jinja::value_string>(result) && result != self) {
        result = new_text(result->val_str);
        result->val_str.mark_input();
    }
    return adopted(std::move(result));
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

bool has_methods(const value & v) {
    const auto * object = dynamic_cast<const jinja::value_object_t *>(v.get());
    return object != nullptr && object->has_builtins;  // else a namespace, or the variable loop
}

// is_method tells which names Python's dict and list take for methods, of those
// that the engine has. Its other functions are filters, which are no members.
static bool is_method(const value & self, const std::string & name) {
    if (has_methods(self)) {
        return name == "get" || name == "keys" || name == "values" || name == "items";
    }
    return name == "append" || name == "pop";
}

value member(const value & self, const std::string & name) {
    if (self->is_undefined() || self->is_none()) {
        return undefined();
    }
    if (const auto * loop = dynamic_cast<const loop_state *>(self.get())) {
        return loop->get(name);
    }
    const bool object = is_val<jinja::value_object>(self);
    if ((has_methods(self) || is_val<jinja::value_array>(self)) && is_method(self, name)) {
        const auto & functions = self->get_builtins();
        if (const auto it = functions.find(name); it != functions.end()) {
            return mk_val<jinja::value_func>(name, it->second, self);
        }
    }
    if (!object) {
        return undefined();
    }
    value none = undefined();
    return self->at(name, none);
}

//
// Tests
//

// python_test answers the tests that the engine sees differently.
static bool python_test(const std::string & name, const value & self, const arguments & args, bool & result) {
    const bool listed = is_val<jinja::value_string>(self) || is_val<jinja::value_array>(self) || is_val<jinja::value_object>(self);
    const bool number = is_val<jinja::value_int>(self) || is_val<jinja::value_float>(self);
    if (name == "iterable" || name == "sequence") {
        result = listed || self->is_undefined();
    } else if (name == "number") {
        result = number || is_val<jinja::value_bool>(self);
    } else if (name == "eq" || name == "equalto" || name == "==") {
        result = equal(self, args.get(0, "other"));
    } else if (name == "ne" || name == "!=") {
        result = !equal(self, args.get(0, "other"));
    } else if (name == "in") {
        result = contains(args.get(0, "seq"), self);
    } else {
        return false;
    }
    return true;
}

bool run_test(const std::string & name, context & ctx, const value & self, const arguments & args) {
    step();
    bool result;
    if (python_test(name, self, args, result)) {
        return result;
    }
    const auto & tests = jinja::global_builtins();
    const auto   it = tests.find("test_is_" + name);
    if (it == tests.end()) {
        throw std::runtime_error("No test named '" + name + "'");
    }
    return call_builtin(it->second, name, ctx, self, args)->as_bool();
}

}  // namespace b3
