package mask

// This file is about tokens that end one item and begin another one.

// begins tells whether a token ends an item and begins another one.
func (a *Automaton) begins(from, token int32) bool {
	return a.vocab.isText(token) && a.configs[a.read(from, a.vocab.piece(token))].begun
}

// appendBegun appends those of some tokens that end an item and begin another
// one.
func (a *Automaton) appendBegun(begun []int32, from int32, tokens []int32) []int32 {
	for _, t := range tokens {
		if a.begins(from, t) {
			begun = append(begun, t)
		}
	}
	return begun
}

// beginning is the first bytes of the item that a configuration is in, if all its
// places are in the same, and none of those before begins like it so far.
func (a *Automaton) beginning(id int32) (bytes [maxBegun + 1]byte, ok bool) {
	c, m := &a.configs[id], &a.memories
	x := m.list[a.memoryOf(id)]
	if c.trails || c.between || x.parent != noMemory || x.text == noText || int(m.texts[x.text].length) < len(bytes) {
		return bytes, false
	}
	for t := x.text; t > emptyText; t = m.texts[t].before {
		if at := int(m.texts[t].length) - 1; at < len(bytes) {
			bytes[at] = m.texts[t].b
		}
	}
	return bytes, true
}

// beginsFreely tells whether a token that ends the item of the given beginning,
// and begins another one, certainly leads where the latter need not repeat any.
func (a *Automaton) beginsFreely(id, vague, token int32, beginning [maxBegun + 1]byte) bool {
	m, piece := &a.memories, a.vocab.piece(token)
	to := a.read(vague, piece)
	x := m.list[a.memoryOf(to)]
	if x.parent != vagueMemory || x.set != endedSet || x.text <= emptyText {
		return false
	}
	begun := piece[len(piece)-int(x.text-emptyText):]
	var next byteSet
	if string(begun) == string(beginning[:len(begun)]) {
		next.add(beginning[len(begun)])
	}
	text := int32(emptyText)
	for _, b := range begun {
		if text = m.longer.get(text, int32(b)); text == unknown {
			break
		}
	}
	if text != unknown {
		m.addAfter(m.list[a.memoryOf(id)].set, text, &next)
	}
	return a.leadsBeside(to, &next)
}
