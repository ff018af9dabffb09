#include "jinja_node.h"

#include <algorithm>
#include <map>

namespace b3 {

//
// Names and members
//

name_node::name_node(jinja::identifier && n) : jinja::identifier(n.val) {
    pos = n.pos;
}

value name_node::execute_impl(context & ctx) const {
    value v = ctx.get_val(val);
    if (!v->is_undefined()) {
        note(ctx, v, "");
        return v;
    }
    const auto & functions = jinja::global_builtins();
    if (const auto it = functions.find(val); it != functions.end()) {
        return mk_val<jinja::value_func>(val, it->second);
    }
    return v;
}

member_node::member_node(jinja::member_expression && n)
    : jinja::member_expression(std::move(n.object), std::move(n.property), n.computed) {
    pos = n.pos;
}

static int64_t size_of(const value & v) {
    if (is_val<jinja::value_string>(v)) {
        return int64_t(length(v->val_str));
    }
    if (is_val<jinja::value_array>(v)) {
        return int64_t(v->as_array().size());
    }
    throw std::runtime_error("'" + v->type() + "' object cannot be cut");
}

// slice_value is self[start:stop:step] with Python's rules for the bounds.
static value slice_value(const jinja::slice_expression & e, context & ctx, const value & self) {
    if (self->is_undefined()) {
        return self;
    }
    const auto bound = [&](const statement_ptr & s, int64_t otherwise) {
        const value v = s ? s->execute(ctx) : undefined();
        return is_val<jinja::value_int>(v) ? v->as_int() : otherwise;
    };
    const int64_t n = size_of(self), step = bound(e.step_expr, 1);
    if (step == 0) {
        throw std::runtime_error("slice step cannot be zero");
    }
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto    clip = [&](const statement_ptr & s, int64_t otherwise) {
        const int64_t at = bound(s, INT64_MIN);
        return at == INT64_MIN ? otherwise : std::clamp(at < 0 ? at + n : at, low, high);
    };
    const int64_t start = clip(e.start_expr, step > 0 ? low : high), stop = clip(e.stop_expr, step > 0 ? high : low);
    if (is_val<jinja::value_string>(self)) {
        return new_text(slice(self->val_str, start, stop, step));
    }
    std::vector<value> items;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
        items.push_back(self->as_array()[i]);
    }
    return is_val<jinja::value_tuple>(self) ? new_tuple(std::move(items)) : new_list(std::move(items));
}

// item is self[key].
static value item(const value & self, const value & key) {
    if (self->is_undefined() || key->is_undefined()) {
        return undefined();
    }
    if (const auto * object = jinja::cast_val<jinja::value_object>(self); object && key->is_immutable() && key->is_hashable()) {
        if (const auto it = object->unordered.find(key); it != object->unordered.end()) {
            return it->second;
        }
    }
    if (is_val<jinja::value_int>(key) && (is_val<jinja::value_array>(self) || is_val<jinja::value_string>(self))) {
        const int64_t n = size_of(self), at = key->as_int() < 0 ? key->as_int() + n : key->as_int();
        if (at < 0 || at >= n) {
            return undefined();
        }
        return is_val<jinja::value_array>(self) ? self->as_array()[at] : new_text(slice(self->val_str, at, at + 1, 1));
    }
    return is_val<jinja::value_string>(key) ? member(self, flat(key->val_str)) : undefined();
}

// named is self.name.
static value named(context & ctx, const value & self, const statement_ptr & property) {
    if (const auto * index = jinja::cast_stmt<jinja::integer_literal>(property)) {
        note(ctx, self, "array_access");
        return item(self, mk_val<jinja::value_int>(index->val));
    }
    const auto * id = jinja::cast_stmt<jinja::identifier>(property);
    if (id == nullptr) {
        throw std::runtime_error("a member must be a name");
    }
    note(ctx, self, "object_access");
    return member(self, id->val);
}

value member_node::execute_impl(context & ctx) const {
    step();
    const value self = object->execute(ctx);
    if (const auto * slice = jinja::cast_stmt<jinja::slice_expression>(property)) {
        note(ctx, self, "slice");
        return slice_value(*slice, ctx, self);
    }
    value v;
    if (computed) {
        const value key = property->execute(ctx);
        note(ctx, key, "");
        note(ctx, self, is_val<jinja::value_int>(key) ? "array_access" : "object_access");
        v = item(self, key);
    } else {
        v = named(ctx, self, property);
    }
    note(ctx, v, "");
    return v;
}

//
// Calls, filters and tests
//

call_node::call_node(jinja::call_expression && n)
    : jinja::call_expression(std::move(n.callee), std::move(n.args)) {
    pos = n.pos;
}

static value range(const arguments & args) {
    const auto    at = [&](size_t i) { return args.get(i, "")->as_int(); };
    const size_t  n = args.positional.size();
    const int64_t start = n > 1 ? at(0) : 0, stop = at(n > 1 ? 1 : 0), step = n > 2 ? at(2) : 1;
    if (step == 0) {
        throw std::runtime_error("range() step must not be zero");
    }
    std::vector<value> items;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
        work(sizeof(jinja::value_int_t));
        items.push_back(mk_val<jinja::value_int>(i));
    }
    return new_list(std::move(items));
}

static value strftime_now(const arguments & args) {
    const std::string format = flat(to_text(args.get(0, "format")));
    std::string       out(format.size() * 8 + 64, '\0');
    out.resize(std::strftime(out.data(), out.size(), format.c_str(), &run::current().now));
    return new_text(text(out));
}

static value new_namespace(const arguments & args) {
    auto space = mk_val<dict>();
    space->has_builtins = false;
    for (const auto & [key, v] : args.named) {
        space->insert(key, v);
    }
    return space;
}

static value raise_exception(const arguments & args) {
    throw template_error(flat(to_text(args.get(0, "message"))));
}

// own_function finds the functions that stand in for the engine's.
static value (*own_function(const std::string & name))(const arguments &) {
    static const std::map<std::string, value (*)(const arguments &)> all = {
        {"range", range},
        {"strftime_now", strftime_now},
        {"namespace", new_namespace},
        {"raise_exception", raise_exception},
    };
    const auto it = all.find(name);
    return it == all.end() ? nullptr : it->second;
}

static value invoke(const value & function, context & ctx, const arguments & args) {
    if (!is_val<jinja::value_func>(function)) {
        throw std::runtime_error("'" + function->type() + "' is not callable");
    }
    jinja::func_args all(ctx);
    for (const auto & a : args.positional) {
        all.push_back(a);
    }
    for (const auto & [key, v] : args.named) {
        all.push_back(mk_val<jinja::value_kwarg>(key, v));
    }
    return adopted(function->invoke(all));
}

value call_node::execute_impl(context & ctx) const {
    step();
    if (const auto * m = jinja::cast_stmt<jinja::member_expression>(callee); m != nullptr && !m->computed) {
        const auto *    id = jinja::cast_stmt<jinja::identifier>(m->property);
        const value     self = m->object->execute(ctx);
        const arguments given = evaluate(args, ctx);
        value           result;
        note(ctx, self, id ? id->val : "");
        if (id != nullptr && call_method(id->val, self, given, result)) {
            return result;
        }
        if (id != nullptr && id->val == "append" && is_val<jinja::value_array>(self)) {
            invoke(member(self, "append"), ctx, given);
            return mk_val<jinja::value_none>();
        }
        if (id != nullptr && self->is_undefined()) {
            if (const auto & all = self->get_builtins(); all.count(id->val) > 0) {
                return call_builtin(all.at(id->val), id->val, ctx, self, given);  // Jinja2 refuses
            }
        }
        return invoke(id ? member(self, id->val) : undefined(), ctx, given);
    }
    if (const auto * id = jinja::cast_stmt<jinja::identifier>(callee)) {
        const auto own = own_function(id->val);
        if (own != nullptr && ctx.get_val(id->val)->is_undefined()) {
            return own(evaluate(args, ctx));
        }
    }
    const arguments given = evaluate(args, ctx);
    return invoke(callee->execute(ctx), ctx, given);
}

value run_filter(const statement_ptr & filter, context & ctx, const value & self) {
    if (const auto * id = jinja::cast_stmt<jinja::identifier>(filter)) {
        return apply_filter(id->val, ctx, self, {});
    }
    const auto * call = jinja::cast_stmt<jinja::call_expression>(filter);
    const auto * id = call ? jinja::cast_stmt<jinja::identifier>(call->callee) : nullptr;
    if (id == nullptr) {
        throw std::runtime_error("a filter must be a name");
    }
    return apply_filter(id->val, ctx, self, evaluate(call->args, ctx));
}

filtered_node::filtered_node(jinja::filter_expression && n)
    : jinja::filter_expression(std::move(n.operand), std::move(n.filter)) {
    pos = n.pos;
}

value filtered_node::execute_impl(context & ctx) const {
    step();
    return run_filter(filter, ctx, operand->execute(ctx));
}

test_node::test_node(jinja::test_expression && n)
    : jinja::test_expression(std::move(n.operand), n.negate, std::move(n.test)) {
    pos = n.pos;
}

value test_node::execute_impl(context & ctx) const {
    step();
    const value  self = operand->execute(ctx);
    const auto * call = jinja::cast_stmt<jinja::call_expression>(test);
    const auto * id = jinja::cast_stmt<jinja::identifier>(call ? call->callee : test);
    if (id == nullptr) {
        throw std::runtime_error("a test must be a name");
    }
    const bool result = run_test(id->val, ctx, self, call ? evaluate(call->args, ctx) : arguments{});
    note(ctx, self, "test_is_" + id->val);
    return mk_val<jinja::value_bool>(result != negate);
}

}  // namespace b3
