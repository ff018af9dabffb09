#include "jinja_node.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace b3 {

// Macros that call each other take the C stack; templates that print nested
// schemas go about as deep as the schemas.
static constexpr int max_calls = 200;

static value boolean(bool b) {
    return mk_val<jinja::value_bool>(b);
}

static value undefined() {
    return mk_val<jinja::value_undefined>();
}

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
    return is_val<jinja::value_tuple>(self) ? value(mk_val<jinja::value_tuple>(std::move(items)))
                                            : value(mk_val<jinja::value_array>(std::move(items)));
}

// item is self[key].
static value item(const value & self, const value & key) {
    value none = undefined();
    if (self->is_undefined() || key->is_undefined()) {
        return none;
    }
    if (is_val<jinja::value_object>(self) && key->is_immutable() && key->is_hashable()) {
        const value v = self->at(key, none);
        if (!v->is_undefined() || self->has_key(key)) {
            return v;
        }
    }
    if (is_val<jinja::value_int>(key) && (is_val<jinja::value_array>(self) || is_val<jinja::value_string>(self))) {
        const int64_t n = size_of(self), at = key->as_int() < 0 ? key->as_int() + n : key->as_int();
        if (at < 0 || at >= n) {
            return none;
        }
        return is_val<jinja::value_array>(self) ? self->as_array()[at] : new_text(slice(self->val_str, at, at + 1, 1));
    }
    return is_val<jinja::value_string>(key) ? member(self, key->val_str.str()) : none;
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
        b3::step();
        items.push_back(mk_val<jinja::value_int>(i));
    }
    return mk_val<jinja::value_array>(std::move(items));
}

static value strftime_now(const arguments & args) {
    const std::string format = to_text(args.get(0, "format")).str();
    const run *       r = run::current();
    const std::tm     now = r ? r->now : std::tm{};
    std::string       out(format.size() * 8 + 64, '\0');
    out.resize(std::strftime(out.data(), out.size(), format.c_str(), &now));
    return new_text(text(out));
}

static value new_namespace(const arguments & args) {
    auto space = mk_val<jinja::value_object>();
    space->has_builtins = false;
    for (const auto & [key, v] : args.named) {
        space->insert(key, v);
    }
    return space;
}

static value raise_exception(const arguments & args) {
    throw template_error(to_text(args.get(0, "message")).str());
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

// A nesting counts calls inside of calls.
struct nesting {
    run * r = run::current();
    nesting() {
        if (r != nullptr && ++r->depth > max_calls) {
            r->depth--;
            throw template_error("macros call each other too deeply");
        }
    }
    ~nesting() {
        if (r != nullptr) {
            r->depth--;
        }
    }
};

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
    return function->invoke(all);
}

value call_node::execute_impl(context & ctx) const {
    step();
    nesting nest;
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
                return call_builtin(all.at(id->val), id->val, ctx, &self, given);  // Jinja2 refuses
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
    return run_filter(filter, ctx, operand->execute(ctx));
}

test_node::test_node(jinja::test_expression && n)
    : jinja::test_expression(std::move(n.operand), n.negate, std::move(n.test)) {
    pos = n.pos;
}

// python_test answers the tests that the engine sees differently.
static bool python_test(const std::string & name, const value & self, const arguments & args, bool & result) {
    const bool listed = is_val<jinja::value_string>(self) || is_val<jinja::value_array>(self) || is_val<jinja::value_object>(self);
    const bool number = is_val<jinja::value_int>(self) || is_val<jinja::value_float>(self);
    if (name == "iterable" || name == "sequence") {
        result = listed || self->is_undefined();
    } else if (name == "number") {
        result = number || is_val<jinja::value_bool>(self);
    } else if (name == "eq" || name == "equalto") {
        result = equal(self, args.get(0, "other"));
    } else if (name == "ne") {
        result = !equal(self, args.get(0, "other"));
    } else if (name == "in") {
        result = contains(args.get(0, "seq"), self);
    } else {
        return false;
    }
    return true;
}

value test_node::execute_impl(context & ctx) const {
    const value  self = operand->execute(ctx);
    const auto * call = jinja::cast_stmt<jinja::call_expression>(test);
    const auto * id = jinja::cast_stmt<jinja::identifier>(call ? call->callee : test);
    if (id == nullptr) {
        throw std::runtime_error("a test must be a name");
    }
    const arguments given = call ? evaluate(call->args, ctx) : arguments{};
    bool            result;
    if (!python_test(id->val, self, given, result)) {
        const auto & tests = jinja::global_builtins();
        const auto   it = tests.find("test_is_" + id->val);
        if (it == tests.end()) {
            throw std::runtime_error("No test named '" + id->val + "'");
        }
        result = call_builtin(it->second, id->val, ctx, &self, given)->as_bool();
    }
    note(ctx, self, "test_is_" + id->val);
    return boolean(result != negate);
}

//
// Operators
//

binary_node::binary_node(jinja::binary_expression && n)
    : jinja::binary_expression(n.op, std::move(n.left), std::move(n.right)) {
    pos = n.pos;
}

static bool is_number(const value & v) {
    return is_val<jinja::value_int>(v) || is_val<jinja::value_float>(v);
}

static value concatenation(const value & a, const value & b) {
    text out = to_text(a);
    // Doubling a text in a loop adds parts without end where marks alternate.
    if (out.parts.size() > 1'000'000) {
        throw std::runtime_error("the text grows too long");
    }
    append(out, to_text(b));
    return new_text(std::move(out));
}

static value sum(const value & a, const value & b) {
    const bool string_a = is_val<jinja::value_string>(a), string_b = is_val<jinja::value_string>(b);
    const auto missing = [](const value & v) { return v->is_undefined() || v->is_none(); };
    int64_t    whole;
    if (string_a && string_b) {
        return concatenation(a, b);
    }
    if ((string_a && missing(b)) || (string_b && missing(a))) {
        return string_a ? a : b;  // Jinja2 refuses; what is missing is nothing here
    }
    if (is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b) && !__builtin_add_overflow(a->as_int(), b->as_int(), &whole)) {
        return mk_val<jinja::value_int>(whole);
    }
    if (is_number(a) && is_number(b)) {
        return mk_val<jinja::value_float>(a->as_float() + b->as_float());
    }
    if (is_val<jinja::value_array>(a) && is_val<jinja::value_array>(b)) {
        auto items = a->as_array();
        items.insert(items.end(), b->as_array().begin(), b->as_array().end());
        return mk_val<jinja::value_array>(std::move(items));
    }
    throw std::runtime_error("cannot add " + a->type() + " and " + b->type());
}

static value product(const value & a, const value & b) {
    int64_t whole;
    if (is_val<jinja::value_string>(b) && is_val<jinja::value_int>(a)) {
        return product(b, a);
    }
    if (is_val<jinja::value_string>(a) && is_val<jinja::value_int>(b)) {
        text out;
        for (int64_t i = 0; i < b->as_int(); i++) {
            step();
            append(out, a->val_str);
        }
        return new_text(std::move(out));
    }
    if (is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b) && !__builtin_mul_overflow(a->as_int(), b->as_int(), &whole)) {
        return mk_val<jinja::value_int>(whole);
    }
    if (is_number(a) && is_number(b)) {
        return mk_val<jinja::value_float>(a->as_float() * b->as_float());
    }
    throw std::runtime_error("cannot multiply " + a->type() + " and " + b->type());
}

static value remainder(const value & a, const value & b) {
    if (is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b) && b->as_int() > 0) {
        const int64_t rest = a->as_int() % b->as_int();
        return mk_val<jinja::value_int>(rest < 0 ? rest + b->as_int() : rest);
    }
    if (is_number(a) && is_number(b) && b->as_float() != 0) {
        const double rest = std::fmod(a->as_float(), b->as_float());
        return mk_val<jinja::value_float>(rest != 0 && (rest < 0) != (b->as_float() < 0) ? rest + b->as_float() : rest);
    }
    throw std::runtime_error("cannot take the remainder of " + a->type() + " and " + b->type());
}

static value difference(const value & a, const value & b, const std::string & op) {
    if (!is_number(a) || !is_number(b)) {
        throw std::runtime_error("'" + op + "' not supported between " + a->type() + " and " + b->type());
    }
    int64_t whole;
    if (op == "/") {
        if (b->as_float() == 0) {
            throw std::runtime_error("division by zero");
        }
        return mk_val<jinja::value_float>(a->as_float() / b->as_float());
    }
    if (is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b) && !__builtin_sub_overflow(a->as_int(), b->as_int(), &whole)) {
        return mk_val<jinja::value_int>(whole);
    }
    return mk_val<jinja::value_float>(a->as_float() - b->as_float());
}

value binary_node::execute_impl(context & ctx) const {
    const value a = left->execute(ctx);
    if (op.value == "and") {
        return a->as_bool() ? right->execute(ctx) : a;
    }
    if (op.value == "or") {
        return a->as_bool() ? a : right->execute(ctx);
    }
    const value b = right->execute(ctx);
    static const std::map<std::string, value (*)(const value &, const value &)> operators = {
        {"==", [](const value & a, const value & b) { return boolean(equal(a, b)); }},
        {"!=", [](const value & a, const value & b) { return boolean(!equal(a, b)); }},
        {"<", [](const value & a, const value & b) { return boolean(less(a, b, false)); }},
        {">", [](const value & a, const value & b) { return boolean(less(b, a, false)); }},
        {"<=", [](const value & a, const value & b) { return boolean(!less(b, a, false)); }},
        {">=", [](const value & a, const value & b) { return boolean(!less(a, b, false)); }},
        {"in", [](const value & a, const value & b) { return boolean(contains(b, a)); }},
        {"not in", [](const value & a, const value & b) { return boolean(!contains(b, a)); }},
        {"~", concatenation},
        {"+", sum},
        {"*", product},
        {"%", remainder},
        {"-", [](const value & a, const value & b) { return difference(a, b, "-"); }},
        {"/", [](const value & a, const value & b) { return difference(a, b, "/"); }},
    };
    const auto it = operators.find(op.value);
    if (it == operators.end()) {
        throw std::runtime_error("unknown operator '" + op.value + "'");
    }
    return it->second(a, b);
}

}  // namespace b3
