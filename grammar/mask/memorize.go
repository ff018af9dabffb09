package mask

import (
	"slices"

	"github.com/b3os/b3infer/grammar"
)

// This file is about which rules depend on memory.

// changeOf is what entering a rule of the node does to the memory.
func changeOf(n grammar.Node) memoryChange {
	switch n.(type) {
	case grammar.Unique:
		return changeUnique
	case grammar.Item:
		return changeItem
	}
	return changeNothing
}

// change is what leaving a rule at a state does to the memory.
func (f stateFlags) change() memoryChange {
	switch {
	case f&flagEndsUnique != 0:
		return changeUnique
	case f&flagEndsItem != 0:
		return changeItem
	}
	return changeNothing
}

func endFlag(c memoryChange) stateFlags {
	return [...]stateFlags{changeNothing: 0, changeUnique: flagEndsUnique, changeItem: flagEndsItem}[c]
}

// memorizing tells of each rule whether a Unique or an Item is in it, or in one
// that it leads to.
func memorizing(g *grammar.Grammar) []bool {
	out := make([]bool, len(g.Rules))
	for changed := true; changed; {
		changed = false
		for i := len(g.Rules) - 1; i >= 0; i-- {
			if !out[i] && contains(g.Rules[i].Body, out) {
				out[i], changed = true, true
			}
		}
	}
	return out
}

// contains tells whether a Unique or an Item is in a node; rules tells it of
// rules.
func contains(n grammar.Node, rules []bool) bool {
	any := func(parts []grammar.Node) bool {
		return slices.ContainsFunc(parts, func(p grammar.Node) bool { return contains(p, rules) })
	}
	switch n := n.(type) {
	case grammar.Unique, grammar.Item:
		return true
	case grammar.Ref:
		return rules[n]
	case grammar.Seq:
		return any(n)
	case grammar.Alt:
		return any(n)
	case grammar.Repeat:
		return contains(n.Body, rules)
	case grammar.Bag:
		return contains(n.Sep, rules) ||
			slices.ContainsFunc(n.Items, func(item grammar.BagItem) bool { return contains(item.Body, rules) })
	}
	return false
}
