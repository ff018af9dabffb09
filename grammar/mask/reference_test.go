package mask

import (
	"fmt"
	"slices"

	"github.com/b3os/b3infer/grammar"
)

// A reference reads texts byte by byte with nothing but the nodes of a grammar:
// a position is a list of nodes that are still to be matched. It shares no code
// with the automaton, and no ideas.
type reference struct {
	g     *grammar.Grammar
	vocab *Vocabulary
	nodes []grammar.Node
	known map[any]int // numbers of nodes that can be compared

	todos   numbered[todo]
	threads numbered[thread]
	scopes  numbered[scope] // number 0 is none

	places  [][]int
	placeOf map[string]position
	viable  map[position]bool
	moves   map[move]position
	null    []bool
}

// A position is the number of a set of todos, all that a text has led to. One of
// them is -1 where the text may end.
type position int

// nowhere is the position of no todos.
const nowhere position = 0

type move struct {
	from position
	b    byte
}

// A todo is a node to match, how far that has come, and what comes after it.
type todo struct {
	node       int
	from, left int    // Literal: bytes read; Repeat: rounds to make, and that may be made; DFA: the state
	used       uint64 // Bag: items begun
	char       string // the bytes of a character so far
	inside     bool   // Bag: an item was matched
	closes     bool   // Unique and Item: the body was matched
	next       int    // the todo behind, or -1
}

func newReference(g *grammar.Grammar, v *Vocabulary) *reference {
	r := &reference{
		g: g, vocab: v, known: map[any]int{},
		scopes: numbered[scope]{list: make([]scope, 1)}, viable: map[position]bool{nowhere: false},
		placeOf: map[string]position{}, moves: map[move]position{}, null: g.Nullable(),
	}
	r.place(nil)
	return r
}

// place is the position of todos.
func (r *reference) place(todos []int) position {
	slices.Sort(todos)
	todos = slices.Compact(todos)
	key := fmt.Sprint(todos)
	p, ok := r.placeOf[key]
	if !ok {
		p = position(len(r.places))
		r.placeOf[key] = p
		r.places = append(r.places, todos)
	}
	return p
}

func (r *reference) start() position {
	return r.expand([]int{r.threads.id(thread{todo: r.push(grammar.Ref(0), -1)})})
}

// expand follows all that reads nothing.
func (r *reference) expand(ids []int) position {
	seen, out := map[int]bool{}, []int(nil)
	for len(ids) > 0 {
		id := ids[len(ids)-1]
		ids = ids[:len(ids)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		t := r.threads.list[id]
		switch {
		case t.todo < 0:
			out = append(out, -1)
		case r.isTerminal(t.todo):
			out = append(out, id)
			fallthrough
		default:
			ids = append(ids, r.openThread(t)...)
		}
	}
	return r.place(out)
}

// read is the position behind one more byte.
func (r *reference) read(p position, b byte) position {
	to, ok := r.moves[move{p, b}]
	if !ok {
		to = r.step(p, b)
		r.moves[move{p, b}] = to
	}
	return to
}

func (r *reference) step(p position, b byte) position {
	var out []int
	for _, id := range r.places[p] {
		if id < 0 {
			continue
		}
		if th, ok := r.readScopes(r.threads.list[id], b); ok {
			for _, todo := range r.stepTodo(r.todos.list[th.todo], b) {
				out = append(out, r.threads.id(thread{todo, th.scope, th.bounded}))
			}
		}
	}
	return r.expand(out)
}

// accept is the position behind one more token.
func (r *reference) accept(p position, token int32) position {
	if r.behind(r.newToken(p, true), token) == nowhere {
		return nowhere
	}
	to := r.behind(r.newToken(p, false), token)
	if !r.isViable(to) {
		return nowhere
	}
	return to
}

func (r *reference) behind(p position, token int32) position {
	var out []int
	for _, id := range r.places[p] {
		if id < 0 {
			continue
		}
		th, ok := r.threads.list[id], true
		t := r.todos.list[th.todo]
		n, isToken := r.nodes[t.node].(grammar.Token)
		if !isToken {
			continue
		}
		is, known := r.vocab.mark(n)
		isThis := known && is == token
		other := !isThis && (r.vocab.isText(token) || r.vocab.kinds[token] == Marker)
		if isThis && !n.Not || n.Not && other {
			for _, b := range r.vocab.piece(token) {
				if ok {
					th, ok = r.readScopes(th, b)
				}
			}
			if ok {
				out = append(out, r.threads.id(thread{t.next, th.scope, th.bounded}))
			}
		}
	}
	spelled := nowhere
	if r.vocab.isText(token) {
		spelled = p
		for _, b := range r.vocab.piece(token) {
			spelled = r.read(spelled, b)
		}
	}
	if len(out) > 0 {
		spelled = r.place(slices.Concat(r.places[r.expand(out)], r.places[spelled]))
	}
	return spelled
}

// ends tells whether the text may end.
func (r *reference) ends(p position) bool {
	return len(r.places[p]) > 0 && r.places[p][0] < 0
}

// numbered gives values numbers, in the order in which they come.
type numbered[T comparable] struct {
	list []T
	ids  map[T]int
}

func (n *numbered[T]) id(v T) int {
	id, ok := n.ids[v]
	if !ok {
		if n.ids == nil {
			n.ids = map[T]int{}
		}
		id = len(n.list)
		n.ids[v] = id
		n.list = append(n.list, v)
	}
	return id
}
