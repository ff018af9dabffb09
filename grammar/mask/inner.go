package mask

import "math/bits"

// An inner mask is the tokens that stay inside of a set of items, whatever their
// frame, and what is left of those that leave. It does not change once it is
// made.
type inner struct {
	base    *inner   // all tokens and exits of another one are in it, but for dropped and missing
	tokens  []uint64 // a mask, or nil
	ids     []int32  // more tokens
	missing []int32  // tokens of base that are not in it
	dropped []int32  // nodes of the trie at which the exits of base do not hold
	exits   exits
	// partial says that there are too many exits to keep: tokens that leave must
	// be looked for in another way.
	partial bool
}

// maxIDs is up to how many tokens are kept as a list.
const maxIDs = 1024

// bytes is how much memory the inner mask holds.
func (in *inner) bytes() int {
	return 160 + 8*cap(in.tokens) + 4*(cap(in.ids)+cap(in.missing)+cap(in.dropped)) +
		16*cap(in.exits.nodes) + 12*cap(in.exits.tokens)
}

// addTo adds the tokens to a mask. Scratch is space to work in.
func (in *inner) addTo(dst []uint64, scratch *[]int32) {
	if in.base != nil {
		// Missing tokens stay where dst has them already.
		kept := (*scratch)[:0]
		for _, id := range in.missing {
			if hasBit(dst, id) {
				kept = append(kept, id)
			}
		}
		in.base.addTo(dst, scratch)
		for _, id := range in.missing {
			clearBit(dst, id)
		}
		for _, id := range kept {
			setBit(dst, id)
		}
		*scratch = kept
	}
	for i, w := range in.tokens {
		dst[i] |= w
	}
	for _, id := range in.ids {
		setBit(dst, id)
	}
}

// newInner keeps a set of tokens, in the shorter form.
func newInner(tokens []uint64) *inner {
	n := 0
	for _, w := range tokens {
		n += bits.OnesCount64(w)
	}
	in := &inner{}
	if n > maxIDs {
		in.tokens = append([]uint64(nil), tokens...)
		return in
	}
	in.ids = make([]int32, 0, n)
	for i, w := range tokens {
		for ; w != 0; w &= w - 1 {
			in.ids = append(in.ids, int32(64*i+bits.TrailingZeros64(w)))
		}
	}
	return in
}

// Exits is a trie of what is left of tokens behind the place where they leave.
// Node 0 is the root.
type exits struct {
	nodes  []exitNode
	tokens []exitToken
}

type exitNode struct {
	child, sibling int32 // 0 for none
	token          int32 // the first in the list of tokens that end here, or -1
	b              byte
}

// An exitToken is a token and the node of the vocabulary's trie at which it
// leaves.
type exitToken struct{ token, at, next int32 }

// maxExits bounds the nodes of exits.
const maxExits = 8192

// child is the node behind one more byte, which is made if it is new.
func (x *exits) child(node int32, b byte) int32 {
	for id := x.nodes[node].child; id != 0; id = x.nodes[id].sibling {
		if x.nodes[id].b == b {
			return id
		}
	}
	id := int32(len(x.nodes))
	x.nodes = append(x.nodes, exitNode{sibling: x.nodes[node].child, token: -1, b: b})
	x.nodes[node].child = id
	return id
}

// add puts in all tokens below a node of the trie. It reports false when that
// is too much.
func (x *exits) add(t *trie, at int32) bool {
	size := t.nodes[at].size
	if int(size)+len(x.tokens) > maxExits {
		return false
	}
	if len(x.nodes) == 0 && size > 1 {
		x.nodes = append(x.nodes, exitNode{token: -1})
	}
	depth := t.nodes[at].depth
	var path [1 << 8]int32 // exit nodes by depth behind at
	for i := at + 1; i < at+size; i++ {
		n := &t.nodes[i]
		d := n.depth - depth
		if int(d) >= len(path) {
			return false
		}
		path[d] = x.child(path[d-1], n.b)
		if n.token >= 0 {
			here := &x.nodes[path[d]]
			x.tokens = append(x.tokens, exitToken{n.token, at, here.token})
			here.token = int32(len(x.tokens) - 1)
		}
	}
	return true
}
