package mask

import (
	"github.com/b3os/b3infer/grammar"
)

// push is the todo of a node. A token that the vocabulary does not have is text.
func (r *reference) push(n grammar.Node, next int) int {
	if token, ok := n.(grammar.Token); ok && !token.Not {
		if _, known := r.vocab.mark(token); !known {
			n = grammar.Literal(token.Text)
		}
	}
	t := todo{node: r.number(n), next: next}
	if rep, ok := n.(grammar.Repeat); ok {
		t.from, t.left = rep.Min, rep.Max
	}
	return r.todos.id(t)
}

// number is a number of the node. Nodes that are slices have one for each place
// in memory.
func (r *reference) number(n grammar.Node) int {
	key := any(n)
	switch n := n.(type) {
	case grammar.Seq:
		key = listKey[grammar.Seq](n)
	case grammar.Alt:
		key = listKey[grammar.Alt](n)
	case grammar.Class:
		key = n.String()
	case grammar.Repeat:
		key = [3]int{r.number(n.Body), n.Min, n.Max}
	case grammar.Bag:
		key = &n.Items[0]
	case grammar.Unique:
		key = [2]any{"unique", r.number(n.Body)}
	case grammar.Item:
		key = [2]any{"item", r.number(n.Body)}
	}
	id, ok := r.known[key]
	if !ok {
		id = len(r.nodes)
		r.known[key] = id
		r.nodes = append(r.nodes, n)
	}
	return id
}

type listOf[T any] struct {
	first *grammar.Node
	n     int
}

func listKey[T ~[]grammar.Node](list T) listOf[T] {
	if len(list) == 0 {
		return listOf[T]{}
	}
	return listOf[T]{&list[0], len(list)}
}

func (r *reference) isTerminal(id int) bool {
	t := r.todos.list[id]
	switch n := r.nodes[t.node].(type) {
	case grammar.Literal:
		return t.from < len(n)
	case grammar.Class, grammar.Token, *grammar.DFA:
		return true
	}
	return false
}

// open is what a todo may be taken for, without reading.
func (r *reference) open(t todo) []int {
	switch n := r.nodes[t.node].(type) {
	case grammar.Literal:
		if t.from == len(n) {
			return []int{t.next}
		}
	case grammar.Ref:
		return []int{r.push(r.g.Rules[n].Body, t.next)}
	case grammar.Seq:
		next := t.next
		for i := len(n) - 1; i >= 0; i-- {
			next = r.push(n[i], next)
		}
		return []int{next}
	case grammar.Alt:
		var out []int
		for _, p := range n {
			out = append(out, r.push(p, t.next))
		}
		return out
	case *grammar.DFA:
		if t.char == "" && n.States[t.from].Accept {
			return []int{t.next}
		}
	case grammar.Repeat:
		var out []int
		if t.from == 0 || grammar.IsNullable(n.Body, r.null) {
			out = append(out, t.next)
		}
		if t.left != 0 {
			rest := t
			rest.from = max(t.from-1, 0)
			if t.left != grammar.Unbounded {
				rest.left--
			}
			if rest == t && grammar.IsNullable(n.Body, r.null) {
				return append(out, r.push(n.Body, r.todos.id(rest)))
			}
			out = append(out, r.push(n.Body, r.todos.id(rest)))
		}
		return out
	case grammar.Bag:
		return r.openBag(n, t)
	}
	return nil
}

func (r *reference) openBag(n grammar.Bag, t todo) []int {
	var out []int
	begun, required := 0, 0
	done := true
	for i, item := range n.Items {
		if t.used>>i&1 != 0 {
			begun++
		} else if item.Required {
			required, done = required+1, false
		}
	}
	if !t.inside && begun > 0 { // behind a separator
		return r.items(n, t, begun, required)
	}
	if done && begun >= n.Min {
		out = append(out, t.next)
	}
	if begun == 0 {
		return append(out, r.items(n, t, begun, required)...)
	}
	if len(r.items(n, t, begun, required)) > 0 {
		t.inside = false
		out = append(out, r.push(n.Sep, r.todos.id(t)))
	}
	return out
}

func (r *reference) items(n grammar.Bag, t todo, begun, required int) []int {
	var out []int
	for i, item := range n.Items {
		after := begun + required
		if !item.Required {
			after++
		}
		if t.used>>i&1 != 0 || n.Max != grammar.Unbounded && after > n.Max {
			continue
		}
		next := t
		next.used |= 1 << i
		next.inside = true
		out = append(out, r.push(item.Body, r.todos.id(next)))
	}
	return out
}

func (r *reference) stepTodo(t todo, b byte) (out []int) {
	switch n := r.nodes[t.node].(type) {
	case grammar.Literal:
		if n[t.from] == b {
			t.from++
			out = append(out, r.todos.id(t))
		}
	case grammar.Class:
		t.char += string([]byte{b})
		if to := matching(t.char, n); to == whole {
			out = append(out, t.next)
		} else if to == partly {
			out = append(out, r.todos.id(t))
		}
	case *grammar.DFA:
		t.char += string([]byte{b})
		for _, e := range n.States[t.from].Edges {
			switch matching(t.char, []grammar.Range{{Lo: e.Lo, Hi: e.Hi}}) {
			case whole:
				out = append(out, r.todos.id(todo{node: t.node, from: int(e.To), next: t.next}))
			case partly:
				out = append(out, r.todos.id(t))
			}
		}
	}
	return out
}
