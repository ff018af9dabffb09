package mask

// An entry is a rule with the register that it begins with.
type entry struct {
	rule          int32
	register      uint64
	open          bool // the lists below are made
	starts, calls span
}

type span struct{ from, to int32 }

type entryKey struct {
	rule     int32
	register uint64
}

// A startItem is an item of an entry, without its frame.
type startItem struct {
	register uint64
	state    int32
}

// A startCall is a call that an entry begins with.
type startCall struct {
	callEdge
	register uint64 // of the caller
}

// entry is the number of an entry, which is made if it is new.
func (p *program) entry(rule int32, register uint64) int32 {
	key := entryKey{rule, register}
	if id, ok := p.entryOf[key]; ok {
		return id
	}
	id := int32(len(p.entries))
	p.entryOf[key] = id
	p.entries = append(p.entries, entry{rule: rule, register: register})
	return id
}

// opened is an entry with its lists: the rule is built if it is not yet, and the
// items that it begins with and the rules that it begins with are listed. An
// empty text of the rule is the business of its callers.
func (p *program) opened(id int32) *entry {
	e := &p.entries[id]
	if e.open {
		return e
	}
	rule := e.rule
	if p.rules[rule].start == noState {
		p.build(rule)
		e = &p.entries[id] // building makes entries
	}
	e.open = true
	e.starts.from, e.calls.from = int32(len(p.starts)), int32(len(p.begins))
	todo := []startItem{{e.register, p.rules[rule].start}}
	for seen := map[startItem]bool{}; len(todo) > 0; {
		it := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[it] {
			continue
		}
		seen[it] = true
		if p.states[it.state].kind != stateEdges {
			todo = p.fork(it, todo)
			continue
		}
		if p.hasEdges(it.state) {
			p.starts = append(p.starts, it)
		}
		for _, to := range p.jumpsOf(it.state) {
			todo = append(todo, startItem{it.register, to})
		}
		for _, call := range p.callsOf(it.state) {
			p.begins = append(p.begins, startCall{call, it.register})
		}
	}
	e.starts.to, e.calls.to = int32(len(p.starts)), int32(len(p.begins))
	return e
}

// hasEdges tells whether a state can read something itself.
func (p *program) hasEdges(s int32) bool {
	here, next := &p.states[s], &p.states[s+1]
	return here.bytes < next.bytes || here.tokens < next.tokens
}

// absorbs is how many plain characters an item certainly stays alive on, without
// leaving its rule.
func (p *program) absorbs(it item) uint32 {
	switch flags := p.states[it.state].flags; {
	case flags&flagAbsorbs != 0:
		return unlimited
	case flags&flagAbsorbsBy != 0:
		_, left := roundsOf(it.register)
		return left
	}
	return 0
}

// runOf is how long an item certainly stays alive on bytes of some classes.
func (p *program) runOf(it item) run {
	s := &p.states[it.state]
	if s.flags&flagRunsBy == 0 {
		return s.run
	}
	_, left := roundsOf(it.register)
	return run{s.run.classes, uint8(min(left, maxLongest))}
}

// fork appends where an item goes on that stands at a loop or a bag.
func (p *program) fork(it startItem, dst []startItem) []startItem {
	st := p.states[it.state]
	switch st.kind {
	case stateLoopEnd, stateLoopHead:
		if st.kind == stateLoopEnd {
			it.register = countRound(it.register)
		}
		l := p.loops[st.param]
		need, left := roundsOf(it.register)
		if need == 0 {
			dst = append(dst, startItem{0, l.exit})
		}
		if left > 0 {
			dst = append(dst, startItem{it.register, l.body})
		}
	case stateBagChoose:
		b := &p.bags[st.param]
		for i, body := range b.items {
			if b.allows(it.register, i) {
				dst = append(dst, startItem{it.register | 1<<i, body})
			}
		}
	case stateBagEnd:
		b := &p.bags[st.param]
		if b.complete(it.register) {
			dst = append(dst, startItem{0, b.exit})
		}
		if b.goesOn(it.register) {
			dst = append(dst, startItem{it.register, b.separator})
		}
	}
	return dst
}
