package mask

import "slices"

// Exits is a trie of what is left of tokens behind the place where they leave a
// rule. Node 0 is the root.
type exits struct {
	nodes  []exitNode
	tokens []exitToken // sorted by the place where they leave
}

type exitNode struct {
	child, sibling int32 // 0 for none
	token          int32 // the first in the list of tokens that end here, or -1
	b              byte
}

// An exitToken is a token and the node of the vocabulary's trie at which it
// leaves.
type exitToken struct{ token, at, next int32 }

// maxExits bounds the tokens of exits.
const maxExits = 8192

// newExits makes the trie of tokens that leave.
func newExits(v *Vocabulary, tokens []exitToken) exits {
	if len(tokens) == 0 {
		return exits{}
	}
	x := exits{nodes: []exitNode{{token: -1}}, tokens: slices.Clone(tokens)}
	slices.SortFunc(x.tokens, func(a, b exitToken) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.token - b.token)
	})
	for i := range x.tokens {
		t := &x.tokens[i]
		node := int32(0)
		for _, b := range v.piece(t.token)[v.trie.nodes[t.at].depth:] {
			node = x.child(node, b)
		}
		t.next = x.nodes[node].token
		x.nodes[node].token = int32(i)
	}
	x.nodes = slices.Clip(x.nodes)
	return x
}

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

func (x *exits) bytes() int { return 16*cap(x.nodes) + 12*cap(x.tokens) }

// leave appends the tokens that can go on from a configuration, behind a node of
// the exits. Those that leave at a dropped place are not among them.
func (a *Automaton) leave(x *exits, dropped []int32, node, from int32, ids []int32) []int32 {
	for id := x.nodes[node].child; id != 0; id = x.nodes[id].sibling {
		n := &x.nodes[id]
		to := a.next(from, n.b)
		if to == dead {
			continue
		}
		for t := n.token; t >= 0; t = x.tokens[t].next {
			if _, isDropped := slices.BinarySearch(dropped, x.tokens[t].at); !isDropped {
				ids = append(ids, x.tokens[t].token)
			}
		}
		ids = a.leave(x, dropped, id, to, ids)
	}
	return ids
}
