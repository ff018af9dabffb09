package mask

import "slices"

// A difference is how a configuration's inner mask differs from that of its
// base, beside the tokens.
type difference struct {
	path  []int32     // configurations of the base by the number of bytes read
	both  []int32     // nodes above the one looked at where both may end
	exits []exitToken // tokens inside of the base that leave here
	gone  []span      // nodes of the trie where the base may end and this not, in order
}

// isGone tells whether tokens that leave the base at a place do not here.
func (d *difference) isGone(at int32) bool {
	i, found := slices.BinarySearchFunc(d.gone, at, func(s span, at int32) int {
		switch {
		case at < s.from:
			return 1
		case at >= s.to:
			return -1
		}
		return 0
	})
	return found && d.gone[i].from <= at
}

// appendGone adds to a sorted list the places at which tokens do not leave any
// more.
func (d *difference) appendGone(dropped []int32, tokens []exitToken) []int32 {
	n, last := len(dropped), int32(-1)
	for _, t := range tokens {
		if t.at != last && d.isGone(t.at) {
			dropped = append(dropped, t.at)
		}
		last = t.at
	}
	if n > 0 {
		slices.Sort(dropped)
		dropped = slices.Compact(dropped)
	}
	return dropped
}

// walkDifference turns the mask of base into that of another configuration.
func (a *Automaton) walkDifference(from, base int32) {
	f, d := &a.fill, &a.fill.diff
	f.ends, d.exits, d.gone = f.ends[:0], d.exits[:0], d.gone[:0]
	t := &a.vocab.trie
	a.walkBoth(from, base, 0, t.plain, 0)
	x, y := a.configs[from].absorbs, a.configs[base].absorbs
	if x == unlimited && y == unlimited {
		return
	}
	if x == unlimited {
		a.vocab.plain.addTo(f.mask, unlimited)
		d.gone = append(d.gone, span{t.plain, int32(len(t.nodes))})
		return
	}
	a.walkBoth(from, base, t.plain, int32(len(t.nodes)), min(x, y))
}

// walkBoth follows the tokens between two nodes of the trie from both
// configurations, as long as they differ. Tokens of up to known characters are
// in both masks.
func (a *Automaton) walkBoth(from, base, first, end int32, known uint32) {
	f, d, nodes := &a.fill, &a.fill.diff, a.vocab.trie.nodes
	isPlain := first >= a.vocab.trie.plain
	f.path[0], d.path[0] = from, base
	d.both = d.both[:0]
	for i := first; i < end; {
		n := &nodes[i]
		if uint32(n.depth)+uint32(n.longest) <= known && n.longest < maxLongest {
			i += n.size
			continue
		}
		for k := len(d.both) - 1; k >= 0 && i >= d.both[k]+nodes[d.both[k]].size; k-- {
			d.both = d.both[:k]
		}
		x, y := a.next(f.path[n.depth-1], n.b), int32(dead)
		if d.path[n.depth-1] != dead {
			y = a.next(d.path[n.depth-1], n.b)
		}
		if x == y || x != dead && y != dead && a.alike(x, y, uint32(n.longest)) && n.longest < maxLongest {
			i += n.size
			continue
		}
		if x == dead {
			a.lose(i)
			i += n.size
			continue
		}
		cx, cy := &a.configs[x], &a.configs[y]
		if cx.staysAlive(n, isPlain) {
			setBits(f.mask, a.vocab.trie.below(i))
			d.gone = append(d.gone, span{i, i + n.size})
			i += n.size
			continue
		}
		if n.token >= 0 {
			setBit(f.mask, n.token)
		}
		switch {
		case cx.ends && !cy.ends:
			f.ends = append(f.ends, i)
		case cy.ends && !cx.ends:
			d.gone = append(d.gone, span{i, i + 1})
		case cx.ends:
			d.both = append(d.both, i)
		}
		f.path[n.depth], d.path[n.depth] = x, y
		i++
	}
}

// lose takes the tokens from a node on out of the mask: they may leave above it,
// where they did not leave the base because they were inside.
func (a *Automaton) lose(at int32) {
	f, d, t := &a.fill, &a.fill.diff, &a.vocab.trie
	for _, t := range t.below(at) {
		if !hasBit(f.mask, t) {
			continue
		}
		clearBit(f.mask, t)
		for _, above := range d.both {
			d.exits = append(d.exits, exitToken{token: t, at: above})
		}
	}
	d.gone = append(d.gone, span{at, at + t.nodes[at].size})
}
