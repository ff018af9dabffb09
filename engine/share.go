package engine

import (
	"cmp"
	"slices"
)

// A prefill is a sequence that waits for rows of a step.
type prefill struct {
	pending int    // rows until its first token
	since   uint64 // the step that it has waited since: the lowest is the oldest
}

// agedShare is the part of a step's prefill rows that the oldest prefill gets
// first, so that short prompts cannot starve a long one.
const agedShare = 4

// share splits rows among prefills: the oldest gets a quarter, the rest goes to
// the shortest first. The result has each one's rows. With single set (hybrids,
// where chunks of unequal length are computed one after the other), one prefill
// gets all: the oldest at each agedShare-th step, else the shortest.
func share(rows int, prefills []prefill, single bool, step uint64, into []int) []int {
	into = append(into[:0], make([]int, len(prefills))...)
	if len(prefills) == 0 || rows <= 0 {
		return into
	}
	order := make([]int, len(prefills))
	for i := range order {
		order[i] = i
	}
	oldest := slices.MinFunc(order, func(a, b int) int { return cmp.Compare(prefills[a].since, prefills[b].since) })
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(prefills[a].pending, prefills[b].pending) })
	if single {
		chosen := order[0]
		if step%agedShare == 0 {
			chosen = oldest
		}
		into[chosen] = min(rows, prefills[chosen].pending)
		return into
	}
	give := func(i, n int) {
		n = min(n, prefills[i].pending-into[i], rows)
		into[i] += n
		rows -= n
	}
	give(oldest, (rows+agedShare-1)/agedShare)
	for _, i := range order {
		give(i, rows)
	}
	return into
}
