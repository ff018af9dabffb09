package mask

import (
	"cmp"
	"slices"
)

// A run is how long a state certainly stays alive on bytes of some classes.
type run struct {
	classes classSet
	bytes   uint8 // no more than maxLongest, which is any number
}

const (
	minRunBytes   = 8 // of the classes of a run, so that it is worth while
	maxRunClasses = 3 // tried in one rule
	maxRunPasses  = 12
)

// markRuns finds the runs of the rule's states.
func (b *builder) markRuns() {
	if d, ok := b.rounds(); ok {
		d.flags |= flagRunsBy
		d.run.classes = b.classesAt(b.loops[0].body, b.isLoopEnd)
	}
	alive := make([]classSet, len(b.drafts))
	for id := range b.drafts {
		if width(b.drafts[id].bytes) >= minRunBytes {
			alive[id] = b.classesAt(int32(id), func(int32) bool { return true })
		}
	}
	for _, classes := range b.runClasses(alive) {
		lengths := b.runLengths(classes, alive)
		for id, n := range lengths {
			if d := &b.drafts[id]; n > d.run.bytes && d.run.bytes < minRunBytes && d.flags&flagRunsBy == 0 {
				d.run = run{classes, n}
			}
		}
	}
}

// rounds is the state of a counted loop whose rounds are single bytes.
func (b *builder) rounds() (*draft, bool) {
	if len(b.loops) == 0 || b.loops[0].body < 0 {
		return nil, false
	}
	d := &b.drafts[b.loops[0].body]
	for _, e := range d.bytes {
		if e.lo < twoBytes && !b.isLoopEnd(e.to) {
			return nil, false
		}
	}
	return d, len(d.bytes) > 0
}

func (b *builder) isLoopEnd(id int32) bool { return id >= 0 && b.drafts[id].kind == stateLoopEnd }

// runClasses is the sets of classes that most states of the rule lead on with,
// larger ones first.
func (b *builder) runClasses(alive []classSet) []classSet {
	const ends = 1<<9 | 1<<10 // " and \, which end what loops in strings
	counts := map[classSet]int{}
	for id, s := range alive {
		s &^= ends
		if s != 0 && b.drafts[id].flags&(flagAbsorbs|flagAbsorbsBy|flagRunsBy) == 0 && s.size() >= minRunBytes {
			counts[s]++
		}
	}
	var out []classSet
	for s := range counts {
		out = append(out, s)
	}
	slices.SortFunc(out, func(s, t classSet) int {
		return cmp.Or(cmp.Compare(counts[t], counts[s]), cmp.Compare(s, t))
	})
	out = out[:min(len(out), maxRunClasses)]
	slices.SortFunc(out, func(s, t classSet) int { return cmp.Or(cmp.Compare(t.size(), s.size()), cmp.Compare(s, t)) })
	return out
}

// width is how many bytes lead on.
func width(edges []byteEdge) int {
	n := 0
	for _, e := range edges {
		n += int(e.hi) - int(e.lo) + 1
	}
	return n
}

// runLengths is how many bytes of the classes each state stays alive on: one more
// than the worst that such a byte leads to. It assumes the best of all states and
// takes back what does not hold, up and down in turns.
func (b *builder) runLengths(classes classSet, alive []classSet) []uint8 {
	lengths := make([]uint8, len(b.drafts))
	var order []runTargets
	var targets []int32
	for id, s := range alive {
		if s&classes == classes {
			from := len(targets)
			targets = b.appendTargets(targets, int32(id), classes)
			lengths[id] = maxLongest
			order = append(order, runTargets{int32(id), span{int32(from), int32(len(targets))}})
		}
	}
	for range maxRunPasses {
		changed := false
		for _, t := range order {
			n := uint8(maxLongest)
			for _, to := range targets[t.to.from:t.to.to] {
				n = min(n, b.lengthAt(to, classes, lengths))
			}
			if n < maxLongest {
				n++
			}
			if n < lengths[t.id] {
				lengths[t.id], changed = n, true
			}
		}
		if !changed {
			return lengths
		}
		slices.Reverse(order)
	}
	clear(lengths)
	return lengths
}

// runTargets is a state and where characters of a run's classes lead from it.
type runTargets struct {
	id int32
	to span
}

// appendTargets appends the states that characters of the classes lead to.
func (b *builder) appendTargets(targets []int32, id int32, classes classSet) []int32 {
	from := len(targets)
	add := func(to int32) {
		if !slices.Contains(targets[from:], to) {
			targets = append(targets, to)
		}
	}
	for _, e := range b.drafts[id].bytes {
		if e.touches(classes) {
			add(e.to)
		}
	}
	if classes&wideClass != 0 {
		for _, shape := range wideShapes {
			b.eachEnd(id, shape, add)
		}
	}
	return targets
}

// lengthAt is how many bytes a state stays alive on, as far as is known.
func (b *builder) lengthAt(id int32, classes classSet, lengths []uint8) uint8 {
	if id < 0 {
		s := &b.p.states[^id]
		switch {
		case s.run.classes&classes == classes:
			return s.run.bytes
		case s.flags&flagAbsorbs != 0 && classes&otherClass == 0:
			return maxLongest
		}
		return 0
	}
	n := lengths[id]
	for _, jump := range b.drafts[id].jumps {
		if jump >= 0 {
			n = max(n, lengths[jump])
		}
	}
	return n
}

// classesAt is the classes all of whose characters lead on, those of more than one
// byte to a good state.
func (b *builder) classesAt(id int32, good func(int32) bool) classSet {
	d := &b.drafts[id]
	s := classesOf(d.bytes)
	if len(d.bytes) == 0 || d.bytes[len(d.bytes)-1].hi < twoBytes {
		return s
	}
	m := marker{b: b}
	for _, shape := range wideShapes {
		if !m.follows(id, shape, good) {
			return s
		}
	}
	return s | wideClass
}

// eachEnd calls visit for the states that byte sequences of a shape lead to.
func (b *builder) eachEnd(id int32, shape []byteRange, visit func(int32)) {
	if len(shape) == 0 {
		visit(id)
		return
	}
	if id < 0 {
		return
	}
	for _, e := range b.drafts[id].bytes {
		if e.lo <= shape[0].hi && shape[0].lo <= e.hi {
			b.eachEnd(e.to, shape[1:], visit)
		}
	}
}
