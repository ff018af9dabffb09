package mask

import "math"

// A trie holds token texts. Nodes are in the order of a walk, each before those
// below it. Two tries stand one behind the other: the tokens with something
// special in them, then those of plain characters only.
type trie struct {
	nodes  []trieNode
	tokens []int32 // in the order of their nodes
	plain  int32   // where the second one begins
}

// A trieNode is one byte behind the node above it. There is no root node.
type trieNode struct {
	token   int32 // the token that ends here, or -1
	size    int32 // nodes from here to the last one below, this one included
	depth   uint16
	b       byte
	longest uint8    // bytes behind this one of the longest token below; at most maxLongest
	below   classSet // of the bytes behind this one, with wideClass among plain tokens alone
	first   int32    // the place of the tokens from here on in the trie's list
}

// maxLongest stands for itself and all above.
const maxLongest = math.MaxUint8

// add appends a trie of tokens that are sorted by their text and differ in it.
func (t *trie) add(v *Vocabulary, sorted []int32) {
	var path []int32 // nodes of the last token's bytes
	var classes []classSet
	for _, id := range sorted {
		piece := v.piece(id)
		same := 0
		for same < len(path) && same < len(piece) && t.nodes[path[same]].b == piece[same] {
			same++
		}
		t.close(path[same:])
		path = path[:same]
		for depth := same; depth < len(piece); depth++ {
			path = append(path, int32(len(t.nodes)))
			t.nodes = append(t.nodes, trieNode{token: -1, depth: uint16(depth + 1), b: piece[depth], first: int32(len(t.tokens))})
		}
		t.nodes[path[len(path)-1]].token = id
		t.tokens = append(t.tokens, id)
		var below classSet
		classes = appendClasses(classes[:0], piece)
		for depth := len(path) - 1; depth >= 0; depth-- {
			here := &t.nodes[path[depth]]
			here.longest = max(here.longest, uint8(min(len(piece)-1-depth, maxLongest)))
			here.below |= below
			below |= classes[depth]
		}
	}
	t.close(path)
}

// close sets the sizes of nodes that get nothing more below them.
func (t *trie) close(nodes []int32) {
	for _, n := range nodes {
		t.nodes[n].size = int32(len(t.nodes)) - n
	}
}

// below is the tokens from a node on.
func (t *trie) below(at int32) []int32 {
	here := &t.nodes[at]
	if next := at + here.size; int(next) < len(t.nodes) {
		return t.tokens[here.first:t.nodes[next].first]
	}
	return t.tokens[here.first:]
}
