package mask

// next is the configuration after one more byte.
func (a *Automaton) next(from int32, b byte) int32 {
	if row := a.configs[from].row; row >= 0 {
		if to := a.moves.row(row)[b]; to != unknown {
			return to
		}
	} else if to := a.moves.get(from, int32(b)); to != unknown {
		return to
	}
	return a.step(from, b)
}

// step works out a transition and keeps it, for all bytes that are alike.
func (a *Automaton) step(from int32, b byte) int32 {
	if from == dead || a.fault != nil {
		return dead
	}
	c := &a.closure
	c.start()
	lo, hi := byte(0), byte(255)
	for _, it := range a.of(a.configs[from].items) {
		for _, e := range a.program.bytesOf(it.state) {
			switch {
			case b < e.lo:
				hi = min(hi, e.lo-1)
			case b > e.hi:
				lo = max(lo, e.hi+1)
			default:
				lo, hi = max(lo, e.lo), min(hi, e.hi)
				frame := it.frame
				if a.program.remembers {
					frame = a.remember(frame, b)
				}
				if frame != lost {
					c.todo = append(c.todo, item{it.register, e.to, frame})
				}
			}
		}
	}
	if a.configs[from].exact {
		lo, hi = b, b
	}
	to := int32(dead)
	if len(c.todo) > 0 {
		if to = a.close(); a.fault != nil {
			return dead
		}
	}
	a.keep(from, b, to, lo, hi)
	return to
}

// keep remembers a transition. A configuration with many gets a row, where it
// stands for all bytes from lo to hi.
func (a *Automaton) keep(from int32, b byte, to int32, lo, hi byte) {
	here := &a.configs[from]
	if here.row < 0 && here.steps < maxSparse {
		here.steps++
		a.moves.put(from, int32(b), to)
		return
	}
	if here.row < 0 {
		here.row = a.moves.newRow()
	}
	row := a.moves.row(here.row)
	for i := int(lo); i <= int(hi); i++ {
		row[i] = to
	}
}

// remember is a frame whose memory has one more byte, or lost.
func (a *Automaton) remember(id int32, b byte) int32 {
	memory := a.frames[id].memory
	if memory <= vagueMemory {
		return id
	}
	to := a.memories.read(memory, b)
	if to == lost {
		return lost
	}
	return a.framed(id, to)
}

// rememberAll is a frame whose memory has a whole text more, or lost.
func (a *Automaton) rememberAll(id int32, text []byte) int32 {
	for i := 0; i < len(text) && id != lost && a.program.remembers; i++ {
		id = a.remember(id, text[i])
	}
	return id
}

// read is the configuration after a text.
func (a *Automaton) read(from int32, text []byte) int32 {
	for _, b := range text {
		if from = a.next(from, b); from == dead {
			break
		}
	}
	return from
}

// accept is the configuration after one token, or dead.
func (a *Automaton) accept(from, token int32) int32 {
	isText := a.vocab.isText(token)
	if !a.configs[from].tokens {
		if !isText {
			return dead
		}
		return a.read(from, a.vocab.piece(token))
	}
	if to := a.moves.get(from, tokenSymbol+token); to != unknown {
		return to
	}
	spelled := int32(dead)
	if isText {
		spelled = a.read(from, a.vocab.piece(token))
	}
	to := a.jump(from, token, spelled)
	if a.fault == nil {
		a.moves.put(from, tokenSymbol+token, to)
	}
	return to
}

// tokenSymbol is added to a token to tell it from a byte.
const tokenSymbol = 256

// jump follows the token edges, and goes on as well where the token's text led.
func (a *Automaton) jump(from, token, spelled int32) int32 {
	c := &a.closure
	c.start()
	for _, it := range a.of(a.configs[from].items) {
		for _, e := range a.program.tokensOf(it.state) {
			if e.not && (token == e.token || !hasBit(a.vocab.others, token)) || !e.not && token != e.token {
				continue
			}
			if frame := a.rememberAll(it.frame, a.vocab.piece(token)); frame != lost {
				c.todo = append(c.todo, item{it.register, e.to, frame})
			}
		}
	}
	if len(c.todo) == 0 {
		return spelled
	}
	c.todo = append(c.todo, a.of(a.configs[spelled].items)...)
	c.ends, c.memory = a.configs[spelled].ends, a.configs[spelled].memory
	if to := a.close(); a.fault == nil {
		return to
	}
	return dead
}

// intern is the number of the configuration of items, which are sorted.
func (a *Automaton) intern(items []item, ends bool, memory int32) int32 {
	before := len(a.configs)
	id := a.configOf(items, ends, memory)
	if len(a.configs) == before {
		return id
	}
	c := &a.configs[id]
	for _, it := range items {
		c.tokens = c.tokens || len(a.program.tokensOf(it.state)) > 0
		c.absorbs = max(c.absorbs, a.program.absorbs(it))
		if r := a.program.runOf(it); r.bytes > c.run.bytes {
			c.run = r
		}
		if memory := a.frames[it.frame].memory; memory > vagueMemory {
			c.exact = c.exact || !a.memories.list[memory].vague
			c.trails = c.trails || a.memories.list[memory].trails
			c.between = c.between || a.memories.isBetween(memory)
			c.begun = c.begun || a.memories.hasBegun(memory)
		}
	}
	if a.made++; a.made > a.limits.Configurations {
		a.fail(errConfigurations)
	}
	return id
}

// after is the configuration of what follows when the rule at the frame has
// ended.
func (a *Automaton) after(id int32) int32 {
	if a.frames[id].config == unknown {
		a.closure.start()
		for _, back := range a.of(a.frames[id].returns) {
			a.closure.todo = append(a.closure.todo, item{back.register, back.state, a.framed(back.frame, a.frames[id].memory)})
		}
		config := a.close()
		if a.fault != nil {
			return dead
		}
		a.frames[id].config = config
	}
	return a.frames[id].config
}
