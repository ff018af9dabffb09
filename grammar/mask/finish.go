package mask

// finish appends the drafts to the program and gives the number of the rule's
// first state.
func (b *builder) finish(start int32) int32 {
	p := b.p
	p.states = p.states[:len(p.states)-1] // the mark of the end
	first := int32(len(p.states))
	place := func(id int32) int32 {
		if id < 0 {
			return ^id
		}
		return first + id
	}
	loops, bags := int32(len(p.loops)), int32(len(p.bags))
	for _, l := range b.loops {
		p.loops = append(p.loops, loop{place(l.body), place(l.exit)})
	}
	for _, g := range b.bags {
		for i := range g.items {
			g.items[i] = place(g.items[i])
		}
		g.separator, g.exit = place(g.separator), place(g.exit)
		p.bags = append(p.bags, g)
	}
	for _, d := range b.drafts {
		s := p.end()
		s.kind, s.flags, s.param, s.run = d.kind, d.flags, loops, d.run
		if d.kind == stateBagChoose || d.kind == stateBagEnd {
			s.param = bags
		}
		p.states = append(p.states, s)
		for _, e := range d.bytes {
			p.bytes = append(p.bytes, byteEdge{place(e.to), e.lo, e.hi})
		}
		for _, c := range d.calls {
			to := place(c.to)
			if b.onlyEnds(c.to) {
				to = noState
			}
			p.calls = append(p.calls, callEdge{c.entry, to})
		}
		for _, t := range d.tokens {
			p.tokens = append(p.tokens, tokenEdge{t.token, place(t.to), t.not})
		}
		for _, to := range d.jumps {
			p.jumps = append(p.jumps, place(to))
		}
	}
	p.states = append(p.states, p.end())
	return place(start)
}

// end is the state behind the last one, where its edges would begin.
func (p *program) end() state {
	return state{
		bytes: uint32(len(p.bytes)), calls: uint32(len(p.calls)),
		tokens: uint32(len(p.tokens)), jumps: uint32(len(p.jumps)),
	}
}

// onlyEnds tells whether at a state nothing is left of the rule.
func (b *builder) onlyEnds(id int32) bool {
	if id < 0 {
		return false
	}
	d := &b.drafts[id]
	return d.flags&flagFinal != 0 && d.flags.change() == changeNothing && d.kind == stateEdges &&
		len(d.bytes)+len(d.calls)+len(d.tokens)+len(d.jumps) == 0
}
