#include "jinja_node.h"

#include <algorithm>

namespace b3 {

// A template that loops over a huge range must come to an end. Rendering
// 100,000 messages takes a few million steps.
static constexpr int64_t max_steps = 50'000'000;

static thread_local run * current_run = nullptr;

run::run() { current_run = this; }
run::~run() { current_run = nullptr; }
run * run::current() { return current_run; }

void step() {
    if (current_run != nullptr && ++current_run->steps > max_steps) {
        throw template_error("the template does not come to an end");
    }
}

void emit_all(const statements & body, context & ctx, text & out) {
    for (const auto & s : body) {
        if (const auto * e = dynamic_cast<const emitter *>(s.get())) {
            e->emit(ctx, out);
        } else if (const auto * literal = dynamic_cast<const jinja::string_literal *>(s.get())) {
            add(out, literal->val);
        } else if (const value v = s->execute(ctx); is_val<jinja::value_string>(v)) {
            append(out, v->val_str);  // {% call %}
        }
    }
}

value emitted(const emitter & e, context & ctx) {
    text out;
    e.emit(ctx, out);
    return new_text(std::move(out));
}

//
// The template as a whole
//

// prepare marks the names of members as input too, and puts back the numbers
// that went through as text.
static void prepare(value & v, const std::string & number) {
    if (is_val<jinja::value_array>(v)) {
        for (auto & item : v->val_arr) {
            prepare(item, number);
        }
    } else if (is_val<jinja::value_object>(v)) {
        for (auto & [key, item] : v->val_obj) {
            key->val_str.mark_input();
            const value before = item;
            prepare(item, number);
            if (item != before) {
                v->insert(key, item);
            }
        }
    } else if (!number.empty() && is_val<jinja::value_string>(v)) {
        const std::string s = v->val_str.str();
        if (s.compare(0, number.size(), number) == 0) {
            v = mk_val<wide_number>(s.substr(number.size()));
        }
    }
}

// own makes a variable the template's own text.
static void own(context & ctx, const char * name) {
    const value v = ctx.get_val(name);
    if (is_val<jinja::value_string>(v)) {
        ctx.set_val(name, new_text(text(v->val_str.str())));
    }
}

value root_node::execute_impl(context & ctx) const {
    run * r = run::current();
    value messages = ctx.get_val("messages"), tools = ctx.get_val("tools");
    prepare(messages, r ? r->number : "");
    prepare(tools, r ? r->number : "");
    if (is_val<jinja::value_array>(messages)) {
        for (auto & m : messages->val_arr) {
            if (is_val<jinja::value_object>(m)) {
                value none = mk_val<jinja::value_undefined>();
                m->insert(new_text(text("role")), new_text(text(to_text(m->at("role", none)).str())));
            }
        }
    }
    for (const char * name : {"bos_token", "eos_token", "date_string", "datetime"}) {
        own(ctx, name);
    }
    const value result = emitted(*this, ctx);
    if (r != nullptr && !r->rendered) {
        r->first = result->val_str;
        r->rendered = true;
    }
    return result;
}

//
// if and for
//

if_node::if_node(jinja::if_statement && n)
    : jinja::if_statement(std::move(n.test), std::move(n.body), std::move(n.alternate)) {
    pos = n.pos;
}

void if_node::emit(context & ctx, text & out) const {
    emit_all(test->execute(ctx)->as_bool() ? body : alternate, ctx, out);
}

// assigned_names collects what {% set %} assigns in this scope.
static void assigned_names(const statements & body, std::vector<std::string> & out) {
    const auto take = [&](const statement_ptr & target) {
        if (const auto * id = jinja::cast_stmt<jinja::identifier>(target)) {
            out.push_back(id->val);
        }
    };
    for (const auto & s : body) {
        if (const auto * set = jinja::cast_stmt<jinja::set_statement>(s)) {
            take(set->assignee);
            if (const auto * tuple = jinja::cast_stmt<jinja::tuple_literal>(set->assignee)) {
                std::for_each(tuple->val.begin(), tuple->val.end(), take);
            }
        } else if (const auto * branch = jinja::cast_stmt<jinja::if_statement>(s)) {
            assigned_names(branch->body, out);
            assigned_names(branch->alternate, out);
        }
    }
}

for_node::for_node(jinja::for_statement && n)
    : jinja::for_statement(std::move(n.loopvar), std::move(n.iterable), std::move(n.body), std::move(n.default_block)) {
    pos = n.pos;
    assigned_names(body, assigned);
}

// bind sets the loop's variables.
void for_node::bind(context & scope, const value & item) const {
    if (const auto * id = jinja::cast_stmt<jinja::identifier>(loopvar)) {
        scope.set_val(id->val, item);
        return;
    }
    const auto * names = jinja::cast_stmt<jinja::tuple_literal>(loopvar);
    if (names == nullptr || !is_val<jinja::value_array>(item)) {
        throw std::runtime_error("cannot unpack " + item->type());
    }
    const auto & parts = item->as_array();
    if (parts.size() != names->val.size()) {
        throw std::runtime_error("expected " + std::to_string(names->val.size()) + " values to unpack, got " + std::to_string(parts.size()));
    }
    for (size_t i = 0; i < parts.size(); i++) {
        const auto * id = jinja::cast_stmt<jinja::identifier>(names->val[i]);
        if (id == nullptr) {
            throw std::runtime_error("a loop variable must be a name");
        }
        scope.set_val(id->val, parts[i]);
    }
}

// selected are the items of the loop that its condition lets through.
std::vector<value> for_node::selected(context & scope) const {
    const auto * filtered = jinja::cast_stmt<jinja::select_expression>(iterable);
    const value  all = (filtered ? filtered->lhs : iterable)->execute(scope);
    note(scope, all, "array_access");
    auto items = items_of(all);
    if (filtered == nullptr) {
        return items;
    }
    std::vector<value> kept;
    for (const auto & item : items) {
        bind(scope, item);
        if (filtered->test->execute(scope)->as_bool()) {
            kept.push_back(item);
        }
    }
    return kept;
}

// loop_value is the variable loop in a turn.
static value loop_value(const std::vector<value> & items, size_t i) {
    auto       loop = mk_val<jinja::value_object>();
    const auto number = [](size_t n) { return mk_val<jinja::value_int>(int64_t(n)); };
    const auto flag = [](bool b) { return mk_val<jinja::value_bool>(b); };
    const auto neighbour = [&](bool there, size_t k) { return there ? items[k] : mk_val<jinja::value_undefined>(); };
    loop->has_builtins = false;
    loop->insert("index", number(i + 1));
    loop->insert("index0", number(i));
    loop->insert("revindex", number(items.size() - i));
    loop->insert("revindex0", number(items.size() - i - 1));
    loop->insert("first", flag(i == 0));
    loop->insert("last", flag(i + 1 == items.size()));
    loop->insert("length", number(items.size()));
    loop->insert("previtem", neighbour(i > 0, i - 1));
    loop->insert("nextitem", neighbour(i + 1 < items.size(), i + 1));
    return loop;
}

void for_node::emit(context & ctx, text & out) const {
    context    scope(ctx);
    const auto items = selected(scope);
    for (size_t i = 0; i < items.size(); i++) {
        step();
        for (const auto & name : assigned) {
            scope.set_val(name, ctx.get_val(name));
        }
        scope.set_val("loop", loop_value(items, i));
        bind(scope, items[i]);
        try {
            emit_all(body, scope, out);
        } catch (const jinja::continue_statement::signal &) {
        } catch (const jinja::break_statement::signal &) {
            break;
        }
    }
    if (items.empty()) {
        emit_all(default_block, ctx, out);
    }
}

//
// macro and filter
//

macro_node::macro_node(jinja::macro_statement && n)
    : jinja::macro_statement(std::move(n.name), std::move(n.args), std::move(n.body)) {
    pos = n.pos;
}

value macro_node::execute_impl(context & ctx) const {
    const auto * id = jinja::cast_stmt<jinja::identifier>(name);
    if (id == nullptr) {
        throw std::runtime_error("a macro's name must be a name");
    }
    ctx.set_val(id->val, mk_val<jinja::value_func>(id->val, [this](const jinja::func_args & a) { return call(a); }));
    return mk_val<jinja::value_undefined>();
}

value macro_node::call(const jinja::func_args & given) const {
    context scope(given.ctx);
    size_t  place = 0;
    for (const auto & parameter : args) {
        const auto * with_default = jinja::cast_stmt<jinja::keyword_argument_expression>(parameter);
        const auto * id = jinja::cast_stmt<jinja::identifier>(with_default ? with_default->key : parameter);
        if (id == nullptr) {
            throw std::runtime_error("a macro's parameter must be a name");
        }
        value v = given.get_kwarg(id->val, nullptr);
        if (v == nullptr && place < given.count() && !is_val<jinja::value_kwarg>(given.get_args()[place])) {
            v = given.get_args()[place];
        }
        if (v == nullptr) {
            v = with_default ? with_default->val->execute(scope) : mk_val<jinja::value_undefined>(id->val);
        }
        scope.set_val(id->val, v);
        place++;
    }
    text out;
    emit_all(body, scope, out);
    return new_text(std::move(out));
}

filter_node::filter_node(jinja::filter_statement && n)
    : jinja::filter_statement(std::move(n.filter), std::move(n.body)) {
    pos = n.pos;
}

void filter_node::emit(context & ctx, text & out) const {
    context scope(ctx);
    text    all;
    emit_all(body, scope, all);
    append(out, to_text(run_filter(filter, ctx, new_text(std::move(all)))));
}

}  // namespace b3
