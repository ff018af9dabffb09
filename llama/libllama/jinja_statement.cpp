#include "jinja_node.h"

#include <algorithm>

namespace b3 {

static thread_local run * current_run = nullptr;

run::run(size_t size) : size(size), outer(current_run) { current_run = this; }
run::~run() { current_run = outer; }
run & run::current() { return *current_run; }

printer::printer(const statements & body) {
    for (const auto & s : body) {
        const auto * node = dynamic_cast<const emitter *>(s.get());
        const auto * literal = jinja::is_stmt<jinja::string_literal>(s) ? s.get() : nullptr;
        pieces.push_back({node, literal, s.get()});
    }
}

void printer::emit(context & ctx, text & out) const {
    for (const auto & p : pieces) {
        if (p.node != nullptr) {
            p.node->emit(ctx, out);
        } else if (p.text != nullptr) {
            add(out, static_cast<const jinja::string_literal *>(p.text)->val);
        } else if (const value v = p.other->execute(ctx); is_val<jinja::value_string>(v)) {
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
        const std::string s = flat(v->val_str);
        if (s.compare(0, number.size(), number) == 0) {
            v = mk_val<wide_number>(s.substr(number.size()));
        }
    }
}

// own makes a variable the template's own text.
static void own(context & ctx, const char * name) {
    const value v = ctx.get_val(name);
    if (is_val<jinja::value_string>(v)) {
        ctx.set_val(name, new_text(text(flat(v->val_str))));
    }
}

// own_role does so with the role of a message, which is one of a few words.
static void own_role(jinja::value_object_t & message) {
    for (auto & [key, v] : message.val_obj) {
        if (key->val_str.str() == "role") {
            v = new_text(text(flat(to_text(v))));
            message.unordered[key] = v;
        }
    }
}

// prepare_all makes the conversation as our nodes want it.
static void prepare_all(context & ctx, value & messages, value & tools) {
    prepare(messages, run::current().number);
    prepare(tools, run::current().number);
    if (is_val<jinja::value_array>(messages)) {
        for (auto & m : messages->val_arr) {
            if (is_val<jinja::value_object>(m)) {
                own_role(static_cast<jinja::value_object_t &>(*m));
            }
        }
    }
    for (const char * name : {"bos_token", "eos_token", "date_string", "datetime"}) {
        own(ctx, name);
    }
}

value root_node::execute_impl(context & ctx) const {
    run &        r = run::current();
    const budget limits(r.size);
    value        messages = ctx.get_val("messages"), tools = ctx.get_val("tools");
    const bool   generation = ctx.get_val("add_generation_prompt")->as_bool();
    if (r.rendered && r.generation == generation && equal(r.messages, messages) && equal(r.tools, tools)) {
        return new_text(r.first);
    }
    prepare_all(ctx, messages, tools);
    const value result = emitted(*this, ctx);
    if (!r.rendered) {
        r.first = result->val_str;
        r.rendered = true;
        r.generation = generation;
        r.messages = messages;
        r.tools = tools;
    }
    return result;
}

if_node::if_node(jinja::if_statement && n)
    : jinja::if_statement(std::move(n.test), std::move(n.body), std::move(n.alternate)), then(body), otherwise(alternate) {
    pos = n.pos;
}

void if_node::emit(context & ctx, text & out) const {
    (test->execute(ctx)->as_bool() ? then : otherwise).emit(ctx, out);
}

//
// Scopes
//

scope::scope(context & ctx, const names & variables) : ctx(ctx), variables(variables) {
    before.reserve(variables.size());
    for (const auto & name : variables) {
        before.push_back(ctx.get_val(name));
    }
}

scope::~scope() {
    for (size_t i = 0; i < variables.size(); i++) {
        ctx.set_val(variables[i], before[i]);
    }
}

// add_name adds the name that a node is, or the names of a tuple.
static void add_names(const statement_ptr & target, names & out) {
    if (const auto * id = jinja::cast_stmt<jinja::identifier>(target)) {
        out.push_back(id->val);
    } else if (const auto * tuple = jinja::cast_stmt<jinja::tuple_literal>(target)) {
        for (const auto & t : tuple->val) {
            add_names(t, out);
        }
    }
}

// assigned_in collects what statements assign in their own scope.
static void assigned_in(const statements & body, names & out) {
    for (const auto & s : body) {
        if (const auto * set = jinja::cast_stmt<jinja::set_statement>(s)) {
            add_names(set->assignee, out);
            assigned_in(set->body, out);
        } else if (const auto * macro = jinja::cast_stmt<jinja::macro_statement>(s)) {
            add_names(macro->name, out);
        } else if (const auto * branch = jinja::cast_stmt<jinja::if_statement>(s)) {
            assigned_in(branch->body, out);
            assigned_in(branch->alternate, out);
        }
    }
}

//
// for
//

for_node::for_node(jinja::for_statement && n, bool uses_loop)
    : jinja::for_statement(std::move(n.loopvar), std::move(n.iterable), std::move(n.body), std::move(n.default_block)),
      uses_loop(uses_loop),
      turn(body),
      otherwise(default_block) {
    pos = n.pos;
    add_names(loopvar, loop_names);
    if (uses_loop) {
        loop_names.push_back("loop");
    }
    assigned_in(body, assigned);
}

// bind sets the loop's variables.
void for_node::bind(context & ctx, const value & item) const {
    if (const auto * id = jinja::cast_stmt<jinja::identifier>(loopvar)) {
        ctx.set_val(id->val, item);
        return;
    }
    if (!is_val<jinja::value_array>(item)) {
        throw std::runtime_error("cannot unpack " + item->type());
    }
    const auto & parts = item->as_array();
    const size_t n = loop_names.size() - uses_loop;
    if (parts.size() != n) {
        throw std::runtime_error("expected " + std::to_string(n) + " values to unpack, got " + std::to_string(parts.size()));
    }
    for (size_t i = 0; i < n; i++) {
        ctx.set_val(loop_names[i], parts[i]);
    }
}

// selected are the items of the loop that its condition lets through.
std::vector<value> for_node::selected(context & ctx) const {
    const auto * filtered = jinja::cast_stmt<jinja::select_expression>(iterable);
    const value  all = (filtered ? filtered->lhs : iterable)->execute(ctx);
    note(ctx, all, "array_access");
    auto items = items_of(all);
    if (filtered == nullptr) {
        return items;
    }
    std::vector<value> kept;
    for (const auto & item : items) {
        bind(ctx, item);
        if (filtered->test->execute(ctx)->as_bool()) {
            kept.push_back(item);
        }
    }
    return kept;
}

void for_node::emit(context & ctx, text & out) const {
    const scope variables(ctx, loop_names);
    const auto  loop = mk_val<loop_state>(selected(ctx));
    if (uses_loop) {
        ctx.set_val("loop", loop);
    }
    for (; loop->turn < loop->items.size(); loop->turn++) {
        step();
        const scope fresh(ctx, assigned);
        bind(ctx, loop->items[loop->turn]);
        try {
            turn.emit(ctx, out);
        } catch (const jinja::continue_statement::signal &) {
        } catch (const jinja::break_statement::signal &) {
            break;
        }
    }
    if (loop->items.empty()) {
        otherwise.emit(ctx, out);
    }
}

//
// macro and filter
//

macro_node::macro_node(jinja::macro_statement && n)
    : jinja::macro_statement(std::move(n.name), std::move(n.args), std::move(n.body)), all(body) {
    pos = n.pos;
    for (const auto & parameter : args) {
        const auto * with_default = jinja::cast_stmt<jinja::keyword_argument_expression>(parameter);
        add_names(with_default ? with_default->key : parameter, local);
    }
    if (local.size() != args.size()) {
        throw std::runtime_error("a macro's parameter must be a name");
    }
    assigned_in(body, local);
}

value macro_node::execute_impl(context & ctx) const {
    const auto * id = jinja::cast_stmt<jinja::identifier>(name);
    if (id == nullptr) {
        throw std::runtime_error("a macro's name must be a name");
    }
    ctx.set_val(id->val, mk_val<jinja::value_func>(id->val, [this](const jinja::func_args & a) { return call(a); }));
    return undefined();
}

value macro_node::call(const jinja::func_args & given) const {
    context &   ctx = given.ctx;
    const scope variables(ctx, local);
    // What is given was evaluated by the caller; defaults may use what is before them.
    for (size_t place = 0; place < args.size(); place++) {
        value v = given.get_kwarg(local[place], nullptr);
        if (v == nullptr && place < given.count() && !is_val<jinja::value_kwarg>(given.get_args()[place])) {
            v = given.get_args()[place];
        }
        if (v == nullptr) {
            const auto * with_default = jinja::cast_stmt<jinja::keyword_argument_expression>(args[place]);
            v = with_default ? with_default->val->execute(ctx) : mk_val<jinja::value_undefined>(local[place]);
        }
        ctx.set_val(local[place], v);
    }
    text out;
    all.emit(ctx, out);
    return new_text(std::move(out));
}

filter_node::filter_node(jinja::filter_statement && n)
    : jinja::filter_statement(std::move(n.filter), std::move(n.body)), all(body) {
    pos = n.pos;
    assigned_in(body, assigned);
}

void filter_node::emit(context & ctx, text & out) const {
    const scope variables(ctx, assigned);
    text        printed;
    all.emit(ctx, printed);
    append(out, to_text(run_filter(filter, ctx, new_text(std::move(printed)))));
}

}  // namespace b3
