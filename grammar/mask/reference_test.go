package mask

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/b3os/b3infer/grammar"
)

// A reference reads texts byte by byte with nothing but the nodes of a grammar:
// a position is a list of nodes that are still to be matched. It shares no code
// with the automaton, and no ideas.
type reference struct {
	g     *grammar.Grammar
	vocab *Vocabulary
	todos []todo
	ids   map[todo]int
	nodes []grammar.Node
	known map[any]int // numbers of nodes that can be compared

	threads  []thread
	threadOf map[thread]int
	scopes   []scope
	scopeOf  map[scope]int
	places   [][]int
	placeOf  map[string]position
	viable   map[position]bool
	moves    map[move]position
	null     []bool
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

// A thread is a todo and what is remembered for it: a scope for each Unique
// around it, the innermost last.
type thread struct {
	todo  int
	scope [maxScopes]int // numbers of scopes; 0 for none
	// bounded says that what one token may read of items is bounded.
	bounded bool
}

// maxScopes is how many Uniques may stand one in another.
const maxScopes = 3

// A scope is the items of a Unique so far and the present one.
type scope struct {
	items  string // sorted, a NUL behind each
	text   string
	inItem bool
	ended  bool // an item ended in the present token
	begun  int  // bytes of another item in the present token
}

func newReference(g *grammar.Grammar, v *Vocabulary) *reference {
	r := &reference{
		g: g, vocab: v, ids: map[todo]int{}, known: map[any]int{},
		threadOf: map[thread]int{}, scopes: make([]scope, 1), scopeOf: map[scope]int{}, viable: map[position]bool{nowhere: false},
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
	return r.expand([]int{r.thread(thread{todo: r.push(grammar.Ref(0), -1)})})
}

func (r *reference) thread(t thread) int {
	id, ok := r.threadOf[t]
	if !ok {
		id = len(r.threads)
		r.threadOf[t] = id
		r.threads = append(r.threads, t)
	}
	return id
}

// depth is the number of scopes.
func depth(scopes [maxScopes]int) int {
	n := slices.Index(scopes[:], 0)
	if n < 0 {
		return maxScopes
	}
	return n
}

// with is scopes with the innermost one changed, or false if that is not allowed.
func (r *reference) with(scopes [maxScopes]int, change func(*scope) bool) ([maxScopes]int, bool) {
	n := depth(scopes)
	if n == 0 {
		return scopes, true
	}
	s := r.scopes[scopes[n-1]]
	ok := change(&s)
	scopes[n-1] = r.scope(s)
	return scopes, ok
}

func (r *reference) scope(s scope) int {
	id, ok := r.scopeOf[s]
	if !ok {
		id = len(r.scopes)
		r.scopeOf[s] = id
		r.scopes = append(r.scopes, s)
	}
	return id
}

// readScopes notes one more byte in all scopes.
func (r *reference) readScopes(t thread, b byte) (thread, bool) {
	scopes := &t.scope
	for i, id := range scopes {
		s := r.scopes[id]
		if !s.inItem {
			continue
		}
		s.text += string([]byte{b})
		if s.ended {
			s.begun++
		}
		if t.bounded && s.begun > maxBegun {
			return t, false
		}
		scopes[i] = r.scope(s)
	}
	return t, true
}

// newToken is the position at the start of a token, whose reading is bounded or
// not.
func (r *reference) newToken(p position, bounded bool) position {
	var out []int
	for _, id := range r.places[p] {
		if id >= 0 {
			t := r.threads[id]
			for i, id := range t.scope[:depth(t.scope)] {
				s := r.scopes[id]
				s.ended, s.begun = false, 0
				t.scope[i] = r.scope(s)
			}
			t.bounded = bounded
			id = r.thread(t)
		}
		out = append(out, id)
	}
	return r.place(out)
}

// isViable tells whether a position leads to a place that no item repeats.
func (r *reference) isViable(p position) bool {
	if known, ok := r.viable[p]; ok {
		return known
	}
	free := false
	for _, id := range r.places[p] {
		free = free || id < 0 || !r.repeats(r.threads[id].scope)
	}
	for b := 0; b < 256 && !free; b++ {
		free = r.isViable(r.read(p, byte(b)))
	}
	r.viable[p] = free
	return free
}

func (r *reference) repeats(scopes [maxScopes]int) bool {
	for _, id := range scopes {
		s := r.scopes[id]
		for item := range strings.SplitSeq(s.items, "\x00") {
			if s.inItem && item != "" && strings.HasPrefix(item, s.text) {
				return true
			}
		}
	}
	return false
}

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
	return r.intern(t)
}

func (r *reference) intern(t todo) int {
	id, ok := r.ids[t]
	if !ok {
		id = len(r.todos)
		r.ids[t] = id
		r.todos = append(r.todos, t)
	}
	return id
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
		t := r.threads[id]
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

func (r *reference) isTerminal(id int) bool {
	t := r.todos[id]
	switch n := r.nodes[t.node].(type) {
	case grammar.Literal:
		return t.from < len(n)
	case grammar.Class, grammar.Token, *grammar.DFA:
		return true
	}
	return false
}

// openThread is open with what Unique and Item do to the scopes.
func (r *reference) openThread(th thread) []int {
	t := r.todos[th.todo]
	scopes, ok := th.scope, true
	var todos []int
	switch n := r.nodes[t.node].(type) {
	case grammar.Unique:
		if t.closes {
			todos = []int{t.next}
			scopes[depth(scopes)-1] = 0
			break
		}
		t.closes = true
		todos = []int{r.push(n.Body, r.intern(t))}
		scopes[depth(scopes)] = r.scope(scope{})
	case grammar.Item:
		if t.closes {
			todos = []int{t.next}
			scopes, ok = r.with(scopes, func(s *scope) bool { return s.end(th.bounded) })
			break
		}
		t.closes = true
		todos = []int{r.push(n.Body, r.intern(t))}
		scopes, ok = r.with(scopes, func(s *scope) bool { s.text, s.inItem = "", true; return true })
	default:
		todos = r.open(t)
	}
	var out []int
	for _, todo := range todos {
		if ok {
			out = append(out, r.thread(thread{todo, scopes, th.bounded}))
		}
	}
	return out
}

// end ends the present item.
func (s *scope) end(bounded bool) bool {
	items := strings.Split(s.items, "\x00")
	if bounded && s.ended || slices.Contains(items, s.text) {
		return false
	}
	items = append(items[:len(items)-1], s.text)
	slices.Sort(items)
	*s = scope{items: strings.Join(items, "\x00") + "\x00", ended: true}
	return true
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
				return append(out, r.push(n.Body, r.intern(rest)))
			}
			out = append(out, r.push(n.Body, r.intern(rest)))
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
		out = append(out, r.push(n.Sep, r.intern(t)))
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
		out = append(out, r.push(item.Body, r.intern(next)))
	}
	return out
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
		if th, ok := r.readScopes(r.threads[id], b); ok {
			for _, todo := range r.stepTodo(r.todos[th.todo], b) {
				out = append(out, r.thread(thread{todo, th.scope, th.bounded}))
			}
		}
	}
	return r.expand(out)
}

func (r *reference) stepTodo(t todo, b byte) (out []int) {
	switch n := r.nodes[t.node].(type) {
	case grammar.Literal:
		if n[t.from] == b {
			t.from++
			out = append(out, r.intern(t))
		}
	case grammar.Class:
		t.char += string([]byte{b})
		if to := matching(t.char, n); to == whole {
			out = append(out, t.next)
		} else if to == partly {
			out = append(out, r.intern(t))
		}
	case *grammar.DFA:
		t.char += string([]byte{b})
		for _, e := range n.States[t.from].Edges {
			switch matching(t.char, []grammar.Range{{Lo: e.Lo, Hi: e.Hi}}) {
			case whole:
				out = append(out, r.intern(todo{node: t.node, from: int(e.To), next: t.next}))
			case partly:
				out = append(out, r.intern(t))
			}
		}
	}
	return out
}

const (
	never = iota
	partly
	whole
)

// matching tells whether bytes are, or begin, a character of a set.
func matching(char string, set []grammar.Range) int {
	if utf8.FullRuneInString(char) {
		c, n := utf8.DecodeRuneInString(char)
		if n == len(char) && (c != utf8.RuneError || n > 1) {
			for _, s := range set {
				if s.Lo <= c && c <= s.Hi {
					return whole
				}
			}
		}
		return never
	}
	least, most := char, char
	for !utf8.FullRuneInString(least) {
		least = extend(least, true)
	}
	for !utf8.FullRuneInString(most) {
		most = extend(most, false)
	}
	lo, _ := utf8.DecodeRuneInString(least)
	hi, _ := utf8.DecodeRuneInString(most)
	for _, s := range set {
		if s.Lo <= hi && lo <= s.Hi {
			return partly
		}
	}
	return never
}

// extend adds the least or greatest byte that can follow inside of a character.
func extend(char string, least bool) string {
	for i := range 64 {
		b := byte(0x80 + i)
		if !least {
			b = byte(0xbf - i)
		}
		next := char + string([]byte{b})
		if c, _ := utf8.DecodeRuneInString(next); !utf8.FullRuneInString(next) || c != utf8.RuneError {
			return next
		}
	}
	panic("no byte follows")
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
		th, ok := r.threads[id], true
		t := r.todos[th.todo]
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
				out = append(out, r.thread(thread{t.next, th.scope, th.bounded}))
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
