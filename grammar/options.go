package grammar

import "cmp"

// Options says how FromSchema compiles. The zero value is best effort, compact
// and under the default limits.
type Options struct {
	// Strict refuses what cannot be enforced. Otherwise the grammar admits more
	// than the schema there, and Relaxed lists the places.
	Strict bool
	// Comma and Colon are the texts between members and after a key; empty means
	// "," and ":". A chat template that writes calls with ", " and ": " gets its
	// own spelling back, so that the next turn's prompt has the same tokens.
	Comma, Colon string
	// Unique lets the grammar have Unique nodes, which GBNF cannot say. Without it
	// uniqueItems is enforced only for items out of a few values.
	Unique bool
	Limits Limits
}

// Limits bounds what a schema may cost. Zero fields mean the defaults.
type Limits struct {
	Bytes    int // of the schema in compact form: 65,536
	Depth    int // nested objects and arrays of the schema, the root is 1: 32
	DFA      int // states of a regular expression's automaton: 4,096
	Product  int // states of an automaton made from others: 65,536
	Branches int // alternatives of one type in one place: 256
	Terms    int // combinations of schemas: 10,000
	Rules    int // rules of the grammar: 100,000
	// Work bounds the whole compilation, in elementary steps of about 40 ns.
	Work int // 2,000,000
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Bytes:    cmp.Or(l.Bytes, 64<<10),
		Depth:    cmp.Or(l.Depth, 32),
		DFA:      cmp.Or(l.DFA, 4096),
		Product:  cmp.Or(l.Product, 65536),
		Branches: cmp.Or(l.Branches, 256),
		Terms:    cmp.Or(l.Terms, 10_000),
		Rules:    cmp.Or(l.Rules, 100_000),
		Work:     cmp.Or(l.Work, 2_000_000),
	}
}
