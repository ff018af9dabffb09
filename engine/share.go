package engine

import (
	"cmp"
	"slices"
)

// A prefill is a sequence that waits for rows of a step.
type prefill struct {
	pending int    // rows that it can take
	wanted  int    // of these, the rows that others wait for, or all
	due     int    // rows until its first token, or that of one which waits for it
	since   uint64 // the step that it has waited since: the lowest is the oldest
}

// agedShare is the part of a step's prefill rows that the oldest prefill gets
// first, so that short prompts cannot starve a long one.
const agedShare = 4

// A demand is rows of a prefill: all up to a number. Demands that are due sooner come first.
type demand struct{ prefill, upTo, due int }

// share splits rows among prefills: the oldest gets a quarter, the rest goes to
// the shortest first, or to whom a short one waits for. The result has each one's
// rows. With single set (hybrids, where chunks of unequal length are computed one after
// the other), one prefill gets all: the oldest at each agedShare-th step, else the
// shortest.
func share(rows int, prefills []prefill, single bool, step uint64, into []int) []int {
	into = append(into[:0], make([]int, len(prefills))...)
	if len(prefills) == 0 || rows <= 0 {
		return into
	}
	oldest := 0
	demands := make([]demand, 0, 2*len(prefills))
	for i, p := range prefills {
		if p.since < prefills[oldest].since {
			oldest = i
		}
		demands = append(demands, demand{i, p.wanted, p.due}, demand{i, p.pending, max(p.pending, p.due)})
	}
	slices.SortStableFunc(demands, func(a, b demand) int { return cmp.Compare(a.due, b.due) })
	if single {
		chosen := demands[0].prefill
		if step%agedShare == 0 {
			chosen = oldest
		}
		into[chosen] = min(rows, prefills[chosen].pending)
		return into
	}
	give := func(i, n int) {
		n = max(0, min(n, prefills[i].pending-into[i], rows))
		into[i] += n
		rows -= n
	}
	give(oldest, (rows+agedShare-1)/agedShare)
	for _, d := range demands {
		give(d.prefill, d.upTo-into[d.prefill])
	}
	return into
}
