package mask

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/b3os/b3infer/grammar"
)

// A Key names a grammar: the hash of all that it is made from.
type Key [sha256.Size]byte

// NewKey hashes parts: a schema without white space but with its order of keys,
// which means something, options, the identity of an envelope.
func NewKey(parts ...[]byte) Key {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write(p)
	}
	return Key(h.Sum(nil))
}

// defaultCacheBytes is the memory of a Cache that names none.
const defaultCacheBytes = 256 << 20

// A Cache keeps the automata of one vocabulary, the last used ones, as many as
// fit its memory. It may be used by any number of goroutines.
type Cache struct {
	vocab  *Vocabulary
	limits Limits
	max    int

	mu      sync.Mutex // guards all below, and the fields of entries that say so
	entries map[Key]*list.Element
	order   list.List // of *cached, the last used one first
}

// A cached is an automaton, or one that is being made.
type cached struct {
	key       Key
	made      chan struct{} // closed when the fields below are there
	automaton *Automaton
	err       error
	grammar   int // bytes of the grammar; guarded by Cache.mu
}

// NewCache is an empty cache. Bytes is how much memory its automata and their
// grammars may hold; 0 means 256 MiB.
func NewCache(v *Vocabulary, l Limits, bytes int) *Cache {
	if bytes == 0 {
		bytes = defaultCacheBytes
	}
	return &Cache{vocab: v, limits: l, max: bytes, entries: map[Key]*list.Element{}}
}

// errBuild is what others get who waited for a build that panicked.
var errBuild = errors.New("the grammar could not be built")

// Get is the automaton of a key. The first caller builds its grammar; those who
// ask for the same key meanwhile wait for it, or for their context's end. An
// error of build is given to all of them and not kept.
func (c *Cache) Get(ctx context.Context, k Key, build func() (*grammar.Grammar, error)) (*Automaton, error) {
	c.mu.Lock()
	if at, ok := c.entries[k]; ok {
		c.order.MoveToFront(at)
		c.evict()
		c.mu.Unlock()
		return at.Value.(*cached).wait(ctx)
	}
	e := &cached{key: k, made: make(chan struct{}), err: errBuild}
	c.entries[k] = c.order.PushFront(e)
	c.mu.Unlock()
	size := 0
	defer func() { c.finish(e, size) }()
	var g *grammar.Grammar
	if g, e.err = build(); e.err == nil {
		size = grammarBytes(g)
		e.automaton, e.err = New(g, c.vocab, c.limits)
	}
	return e.automaton, e.err
}

func (e *cached) wait(ctx context.Context) (*Automaton, error) {
	select {
	case <-e.made:
		return e.automaton, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// finish lets those who wait go on, and makes room.
func (c *Cache) finish(e *cached, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(e.made)
	e.grammar = size
	if e.err != nil {
		c.remove(c.entries[e.key])
		return
	}
	c.evict()
}

func (c *Cache) remove(at *list.Element) {
	delete(c.entries, at.Value.(*cached).key)
	c.order.Remove(at)
}

// evict removes what was not used for longest, as long as the rest is too large.
// The last used one stays, and those that are being made count nothing yet.
// Automata grow while they are used, so all sizes are asked for again.
func (c *Cache) evict() {
	used := 0
	for at := c.order.Front(); at != nil; {
		next := at.Next()
		e := at.Value.(*cached)
		if e.isMade() {
			used += e.grammar + e.automaton.Bytes()
			if used > c.max && at != c.order.Front() {
				used -= e.grammar + e.automaton.Bytes()
				c.remove(at)
			}
		}
		at = next
	}
}

func (e *cached) isMade() bool {
	select {
	case <-e.made:
		return true
	default:
		return false
	}
}

// Len is the number of automata.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// grammarBytes is about how much memory a grammar holds.
func grammarBytes(g *grammar.Grammar) int {
	total := 0
	seen := map[*grammar.DFA]bool{grammar.AnyString(): true, grammar.AnyNumber(): true, grammar.AnyInteger(): true, grammar.AnyChar(): true}
	var visit func(grammar.Node)
	visit = func(n grammar.Node) {
		total += 16
		switch n := n.(type) {
		case grammar.Literal:
			total += 16 + len(n)
		case grammar.Class:
			total += 24 + 8*len(n)
		case grammar.Seq:
			for _, p := range n {
				visit(p)
			}
		case grammar.Alt:
			for _, p := range n {
				visit(p)
			}
		case grammar.Repeat:
			total += 32
			visit(n.Body)
		case grammar.Bag:
			visit(n.Sep)
			for _, item := range n.Items {
				visit(item.Body)
			}
		case *grammar.DFA:
			if seen[n] {
				break
			}
			seen[n] = true
			for _, s := range n.States {
				total += 32 + 12*len(s.Edges)
			}
		}
	}
	for _, r := range g.Rules {
		total += 32 + len(r.Name)
		visit(r.Body)
	}
	return total
}
