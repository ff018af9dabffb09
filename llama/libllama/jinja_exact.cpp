#include "jinja_exact.h"

#include "jinja_node.h"

namespace b3 {

namespace {

// A rewriter puts our nodes in the place of the engine's.
class rewriter {
  public:
    // body is for statements, among which expressions print.
    void body(statements & all) {
        for (auto & s : all) {
            const bool prints = jinja::is_stmt<jinja::expression>(s) && !jinja::is_stmt<jinja::string_literal>(s);
            rewrite(s);
            if (prints) {
                s = std::make_unique<print_node>(std::move(s));
            }
        }
    }

  private:
    int loops = 0;  // how often the name loop has been seen

    void rewrite(statement_ptr & s) {
        if (s != nullptr && !statement(s) && !literal(s)) {
            expression(s);
        }
    }

    void each(statements & all) {
        for (auto & s : all) {
            rewrite(s);
        }
    }

    // arguments is for a filter or test: its name stays, which the engine and our
    // nodes read.
    void arguments(statement_ptr & s) {
        if (auto * call = jinja::cast_stmt<jinja::call_expression>(s)) {
            each(call->args);
        }
    }

    bool statement(statement_ptr & s);
    bool literal(statement_ptr & s);
    void expression(statement_ptr & s);
    void loop(statement_ptr & s, jinja::for_statement * n);
    void macro(statement_ptr & s, jinja::macro_statement * n);
};

// put replaces a node by ours, made from it, after the children.
template <typename ours, typename theirs, typename... more> void put(statement_ptr & s, theirs * node, more... args) {
    s = std::make_unique<ours>(std::move(*node), args...);
}

void rewriter::loop(statement_ptr & s, jinja::for_statement * n) {
    rewrite(n->iterable);
    const int before = loops;
    body(n->body);
    const bool uses_loop = loops > before;
    body(n->default_block);
    put<for_node>(s, n, uses_loop);
}

void rewriter::macro(statement_ptr & s, jinja::macro_statement * n) {
    for (auto & a : n->args) {
        if (auto * with_default = jinja::cast_stmt<jinja::keyword_argument_expression>(a)) {
            rewrite(with_default->val);
        }
    }
    body(n->body);
    put<macro_node>(s, n);
}

bool rewriter::statement(statement_ptr & s) {
    if (auto * n = jinja::cast_stmt<jinja::if_statement>(s)) {
        rewrite(n->test);
        body(n->body);
        body(n->alternate);
        put<if_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::for_statement>(s)) {
        loop(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::set_statement>(s)) {
        if (auto * target = jinja::cast_stmt<jinja::member_expression>(n->assignee)) {
            rewrite(target->object);
        }
        rewrite(n->val);
        body(n->body);
    } else if (auto * n = jinja::cast_stmt<jinja::macro_statement>(s)) {
        macro(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::filter_statement>(s)) {
        arguments(n->filter);
        body(n->body);
        put<filter_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::call_statement>(s)) {
        arguments(n->call);
        body(n->body);
    } else {
        return false;
    }
    return true;
}

bool rewriter::literal(statement_ptr & s) {
    if (auto * n = jinja::cast_stmt<jinja::array_literal>(s)) {
        each(n->val);
        put<list_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::tuple_literal>(s)) {
        each(n->val);
        put<tuple_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::object_literal>(s)) {
        for (auto & [key, v] : n->val) {
            rewrite(key);
            rewrite(v);
        }
        put<object_node>(s, n);
    } else {
        return false;
    }
    return true;
}

void rewriter::expression(statement_ptr & s) {
    if (auto * n = jinja::cast_stmt<jinja::string_literal>(s)) {
        put<string_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::identifier>(s)) {
        loops += n->val == "loop";
        put<name_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::member_expression>(s)) {
        rewrite(n->object);
        if (n->computed) {
            rewrite(n->property);
        }
        put<member_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::call_expression>(s)) {
        rewrite(n->callee);
        each(n->args);
        put<call_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::filter_expression>(s)) {
        rewrite(n->operand);
        arguments(n->filter);
        put<filtered_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::test_expression>(s)) {
        rewrite(n->operand);
        arguments(n->test);
        put<test_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::binary_expression>(s)) {
        rewrite(n->left);
        rewrite(n->right);
        put<binary_node>(s, n);
    } else if (auto * n = jinja::cast_stmt<jinja::select_expression>(s)) {
        rewrite(n->lhs);
        rewrite(n->test);
    } else if (auto * n = jinja::cast_stmt<jinja::unary_expression>(s)) {
        rewrite(n->argument);
    } else if (auto * n = jinja::cast_stmt<jinja::slice_expression>(s)) {
        rewrite(n->start_expr);
        rewrite(n->stop_expr);
        rewrite(n->step_expr);
    } else if (auto * n = jinja::cast_stmt<jinja::keyword_argument_expression>(s)) {
        rewrite(n->val);
    } else if (auto * n = jinja::cast_stmt<jinja::ternary_expression>(s)) {
        rewrite(n->condition);
        rewrite(n->true_expr);
        rewrite(n->false_expr);
    }
}

}  // namespace

void make_exact(jinja::program & program) {
    rewriter().body(program.body);
    auto root = std::make_unique<root_node>(std::move(program.body));
    program.body.clear();
    program.body.push_back(std::move(root));
}

}  // namespace b3
