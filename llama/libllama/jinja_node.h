// The nodes that stand in for the engine's own in a rewritten template.
#pragma once

#include <memory>

#include "jinja_call.h"
#include "jinja_exact.h"

namespace b3 {

using jinja::context;
using jinja::statement_ptr;
using jinja::statements;

// An emitter writes what it prints. The engine's nodes return it, which copies
// the text at every level and loses it at break and continue.
struct emitter {
    virtual ~emitter() = default;
    virtual void emit(context & ctx, text & out) const = 0;
};

// A printer emits statements one after the other. What each is, is found out once.
class printer {
    struct piece {
        const emitter *          node;
        const jinja::statement * text;   // the template's own
        const jinja::statement * other;  // returns what it prints
    };
    std::vector<piece> pieces;

  public:
    explicit printer(const statements & body);
    void emit(context & ctx, text & out) const;
};

value emitted(const emitter & e, context & ctx);  // as a string

using names = std::vector<std::string>;

// A scope gives variables their values back when it ends. The engine copies all
// variables for each loop and call instead, which is what most of its time goes to.
class scope {
    context &          ctx;
    const names &      variables;
    std::vector<value> before;

  public:
    scope(context & ctx, const names & variables);
    ~scope();
    scope(const scope &) = delete;
    scope & operator=(const scope &) = delete;
};

// Statements, in jinja_statement.cpp. Each takes the place of the engine's node
// and its children.
struct root_node : jinja::statement, emitter {
    statements body;
    printer    all;
    explicit root_node(statements && body) : body(std::move(body)), all(this->body) { pos = 0; }
    value execute_impl(context & ctx) const override;
    void  emit(context & ctx, text & out) const override { all.emit(ctx, out); }
};

struct print_node : jinja::statement, emitter {
    statement_ptr expression;
    explicit print_node(statement_ptr && e) : expression(std::move(e)) { pos = expression->pos; }
    value execute_impl(context & ctx) const override { return new_text(to_text(expression->execute(ctx))); }
    void  emit(context & ctx, text & out) const override { append(out, execute(ctx)->val_str); }
};

struct if_node : jinja::if_statement, emitter {
    printer then, otherwise;
    explicit if_node(jinja::if_statement && n);
    value execute_impl(context & ctx) const override { return emitted(*this, ctx); }
    void  emit(context & ctx, text & out) const override;
};

struct for_node : jinja::for_statement, emitter {
    names loop_names;  // the loop's variables
    names assigned;    // names that the body sets: fresh in each turn
    bool  uses_loop;   // the body has the name loop
    printer turn, otherwise;
    for_node(jinja::for_statement && n, bool uses_loop);
    value execute_impl(context & ctx) const override { return emitted(*this, ctx); }
    void  emit(context & ctx, text & out) const override;

  private:
    std::vector<value> selected(context & ctx) const;
    void               bind(context & ctx, const value & item) const;
};

struct macro_node : jinja::macro_statement {
    names   local;  // parameters, and names that the body sets
    printer all;
    explicit macro_node(jinja::macro_statement && n);
    value execute_impl(context & ctx) const override;

  private:
    value call(const jinja::func_args & args) const;
};

struct filter_node : jinja::filter_statement, emitter {
    names   assigned;
    printer all;
    explicit filter_node(jinja::filter_statement && n);
    value execute_impl(context & ctx) const override { return emitted(*this, ctx); }
    void  emit(context & ctx, text & out) const override;
};

// Expressions, in jinja_expression.cpp.
struct string_node : jinja::string_literal {
    value text;  // strings do not change
    explicit string_node(jinja::string_literal && n) : jinja::string_literal(n.val), text(new_text(b3::text(val))) { pos = n.pos; }
    value execute_impl(context &) const override { return text; }
};

// The containers of these literals are ours.
struct list_node : jinja::array_literal {
    explicit list_node(jinja::array_literal && n) : jinja::array_literal(std::move(n)) {}
    value execute_impl(context & ctx) const override { return adopted(jinja::array_literal::execute_impl(ctx)); }
};

struct tuple_node : jinja::tuple_literal {
    explicit tuple_node(jinja::tuple_literal && n) : jinja::tuple_literal(std::move(n)) {}
    value execute_impl(context & ctx) const override { return adopted(jinja::tuple_literal::execute_impl(ctx)); }
};

struct object_node : jinja::object_literal {
    explicit object_node(jinja::object_literal && n) : jinja::object_literal(std::move(n)) {}
    value execute_impl(context & ctx) const override { return adopted(jinja::object_literal::execute_impl(ctx)); }
};

struct name_node : jinja::identifier {
    explicit name_node(jinja::identifier && n);
    value execute_impl(context & ctx) const override;
};

struct member_node : jinja::member_expression {
    explicit member_node(jinja::member_expression && n);
    value execute_impl(context & ctx) const override;
};

struct call_node : jinja::call_expression {
    explicit call_node(jinja::call_expression && n);
    value execute_impl(context & ctx) const override;
};

struct filtered_node : jinja::filter_expression {
    explicit filtered_node(jinja::filter_expression && n);
    value execute_impl(context & ctx) const override;
};

struct test_node : jinja::test_expression {
    explicit test_node(jinja::test_expression && n);
    value execute_impl(context & ctx) const override;
};

// In jinja_operator.cpp.
struct binary_node : jinja::binary_expression {
    explicit binary_node(jinja::binary_expression && n);
    value execute_impl(context & ctx) const override;
};

// run_filter applies what stands after the | in a template.
value run_filter(const statement_ptr & filter, context & ctx, const value & self);

}  // namespace b3
