package engine

// A stretch is cells that several sequences hold together: their tokens
// [from, to). What a sequence holds is a chain of stretches from its start on,
// then cells of its own. The chains of all sequences form a tree.
type stretch struct {
	parent   *stretch // the tokens before; nil at the start
	from, to int
	holders  int    // sequences whose chain ends here, and stretches whose parent this is
	counted  uint64 // the last count that it was part of
}

// end is how many tokens a chain covers.
func (x *stretch) end() int {
	if x == nil {
		return 0
	}
	return x.to
}

// at is the chain's first n tokens as a chain of their own, for a new holder; a
// stretch that goes on behind n is split.
func (x *stretch) at(n int) *stretch {
	for x != nil && x.from >= n {
		x = x.parent
	}
	if x == nil {
		return nil
	}
	if x.to > n {
		x.parent = &stretch{parent: x.parent, from: x.from, to: n, holders: 1}
		x.from = n
		x = x.parent
	}
	x.holders++
	return x
}

// give drops one holder of a chain and returns how many cells nobody holds any more.
func (x *stretch) give() (cells int) {
	for ; x != nil; x = x.parent {
		x.holders--
		if x.holders > 0 {
			break
		}
		cells += x.to - x.from
	}
	return cells
}

// lend makes the first n tokens of a holder whose chain is *x a chain for another
// one. Cells behind the chain, which were the holder's own, join it.
func lend(x **stretch, n int) *stretch {
	if n > (*x).end() {
		*x = &stretch{parent: *x, from: (*x).end(), to: n, holders: 1}
	}
	return (*x).at(n)
}
