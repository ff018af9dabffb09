package mask

import (
	"slices"
	"strings"

	"github.com/b3os/b3infer/grammar"
)

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
	s := r.scopes.list[scopes[n-1]]
	ok := change(&s)
	scopes[n-1] = r.scopes.id(s)
	return scopes, ok
}

// readScopes notes one more byte in all scopes.
func (r *reference) readScopes(t thread, b byte) (thread, bool) {
	scopes := &t.scope
	for i, id := range scopes {
		s := r.scopes.list[id]
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
		scopes[i] = r.scopes.id(s)
	}
	return t, true
}

// newToken is the position at the start of a token, whose reading is bounded or
// not.
func (r *reference) newToken(p position, bounded bool) position {
	var out []int
	for _, id := range r.places[p] {
		if id >= 0 {
			t := r.threads.list[id]
			for i, id := range t.scope[:depth(t.scope)] {
				s := r.scopes.list[id]
				s.ended, s.begun = false, 0
				t.scope[i] = r.scopes.id(s)
			}
			t.bounded = bounded
			id = r.threads.id(t)
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
		free = free || id < 0 || !r.repeats(r.threads.list[id].scope)
	}
	for b := 0; b < 256 && !free; b++ {
		free = r.isViable(r.read(p, byte(b)))
	}
	r.viable[p] = free
	return free
}

func (r *reference) repeats(scopes [maxScopes]int) bool {
	for _, id := range scopes {
		s := r.scopes.list[id]
		for item := range strings.SplitSeq(s.items, "\x00") {
			if s.inItem && item != "" && strings.HasPrefix(item, s.text) {
				return true
			}
		}
	}
	return false
}

// openThread is open with what Unique and Item do to the scopes.
func (r *reference) openThread(th thread) []int {
	t := r.todos.list[th.todo]
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
		todos = []int{r.push(n.Body, r.todos.id(t))}
		scopes[depth(scopes)] = r.scopes.id(scope{})
	case grammar.Item:
		if t.closes {
			todos = []int{t.next}
			scopes, ok = r.with(scopes, func(s *scope) bool { return s.end(th.bounded) })
			break
		}
		t.closes = true
		todos = []int{r.push(n.Body, r.todos.id(t))}
		scopes, ok = r.with(scopes, func(s *scope) bool { s.text, s.inItem = "", true; return true })
	default:
		todos = r.open(t)
	}
	var out []int
	for _, todo := range todos {
		if ok {
			out = append(out, r.threads.id(thread{todo, scopes, th.bounded}))
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
