#include <cmath>
#include <map>

#include "jinja_node.h"

namespace b3 {

static value boolean(bool b) {
    return mk_val<jinja::value_bool>(b);
}

binary_node::binary_node(jinja::binary_expression && n)
    : jinja::binary_expression(n.op, std::move(n.left), std::move(n.right)) {
    pos = n.pos;
}

static bool is_number(const value & v) {
    return is_val<jinja::value_int>(v) || is_val<jinja::value_float>(v);
}

static value concatenation(const value & a, const value & b) {
    text out;
    append(out, to_text(a));
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
        return new_list(std::move(items));
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
    step();
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
