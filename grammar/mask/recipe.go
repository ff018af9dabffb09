package mask

import "slices"

// A recipe says how the mask of a configuration is made: out of inner masks and
// further tokens, or as a copy of a whole one.
type recipe struct {
	parts   span  // of recipes.parts
	ids     span  // of recipes.ids
	less    span  // of recipes.ids: tokens that are not in the mask after all
	begun   span  // of recipes.ids: tokens that end an item and begin another one
	whole   int32 // the number of a mask, or -1
	allowed int32 // tokens in the mask
}

// Recipes keeps those that were worked out.
type recipes struct {
	list  []recipe
	parts []int32 // numbers of inner masks
	ids   []int32
	whole [][]uint64
	words int
}

func (r *recipes) bytes() int {
	return 40*cap(r.list) + 4*(cap(r.parts)+cap(r.ids)) + (24+8*r.words)*len(r.whole)
}

// maxCost is how long a mask may take to put together, in tokens that are set
// one by one, before it is kept whole.
const maxCost = 2048

// partCost is the cost of adding one inner mask to another.
const partCost = 700

// recipeOf is the recipe of a configuration's mask.
func (a *Automaton) recipeOf(id int32) *recipe {
	if a.configs[id].recipe < 0 {
		r := a.newRecipe(id)
		if a.fault != nil {
			return nil
		}
		a.configs[id].recipe = int32(len(a.recipes.list))
		a.recipes.list = append(a.recipes.list, r)
	}
	return &a.recipes.list[a.configs[id].recipe]
}

// eachGroup calls visit for the items of each frame.
func (a *Automaton) eachGroup(id int32, visit func([]item)) {
	span := a.configs[id].items
	for from := span.from; from < span.to; {
		to := from + 1
		for to < span.to && a.items[to].frame == a.items[from].frame {
			to++
		}
		visit(a.items[from:to:to])
		from = to
	}
}

// A mixture is what a recipe is made of, while it is worked out.
type mixture struct {
	parts   []int32 // numbers of inner masks
	ids     []int32 // further tokens
	begun   []int32 // of all tokens, those that end an item and begin another one
	cost    int
	partial bool // some inner mask is: parts and ids do not tell
}

// compose works out the mask of a configuration.
func (a *Automaton) compose(id int32) recipe {
	m, mask := &a.mixture, a.fill.mask
	*m = mixture{parts: m.parts[:0], ids: m.ids[:0], begun: m.begun[:0], cost: -partCost}
	a.eachGroup(id, func(items []item) {
		if !m.partial && a.fault == nil {
			a.addGroup(id, items)
		}
	})
	m.ids = a.vocab.appendAliases(m.ids)
	if a.program.remembers {
		m.begun = a.appendBegun(m.begun, id, m.ids)
	}
	m.ids = a.besideText(id, m.ids)
	slices.Sort(m.ids)
	m.ids = slices.Compact(m.ids)
	switch {
	case a.fault != nil:
		return recipe{}
	case !m.partial:
		a.join(m.parts, mask)
	default:
		if a.walkAll(id); a.program.remembers {
			m.begun = a.appendBegun(m.begun[:0], id, appendBits(nil, mask))
		}
	}
	setBits(mask, m.ids)
	hasOthers := a.addOthers(id, mask)
	return a.recipes.keep(m, mask, m.partial || hasOthers || m.cost+len(m.ids) > maxCost)
}

// addGroup adds what the items of one frame allow.
func (a *Automaton) addGroup(id int32, items []item) {
	m, frame := &a.mixture, items[0].frame
	local := a.localOf(items)
	in := a.innerOf(local)
	if m.partial = in.partial; m.partial || a.fault != nil {
		return
	}
	m.parts = append(m.parts, a.configs[local].inner)
	m.cost += partCost + in.cost()
	if a.frames[a.items[a.configs[local].items.from].frame].memory != noMemory {
		frame = a.framed(frame, in.memory)
		in.copyTo(a.fill.other)
		m.begun = a.appendBegun(m.begun, id, appendBits(nil, a.fill.other))
	}
	m.ids = a.leaveFrom(in, frame, m.ids)
}

// keep stores a mixture, or the whole mask that it makes.
func (r *recipes) keep(m *mixture, mask []uint64, whole bool) recipe {
	out := recipe{whole: -1, allowed: int32(count(mask)), begun: r.put(m.begun)}
	if whole {
		r.words = len(mask)
		out.whole = int32(len(r.whole))
		r.whole = append(r.whole, slices.Clone(mask))
		return out
	}
	out.ids = r.put(m.ids)
	out.parts.from = int32(len(r.parts))
	r.parts = append(r.parts, m.parts...)
	out.parts.to = int32(len(r.parts))
	return out
}

func (r *recipes) put(ids []int32) span {
	from := int32(len(r.ids))
	r.ids = append(r.ids, ids...)
	return span{from, int32(len(r.ids))}
}

// leaveFrom appends the tokens that leave an inner mask for the returns of a
// frame.
func (a *Automaton) leaveFrom(in *inner, frame int32, ids []int32) []int32 {
	if in.root != nil && len(in.root.exits.nodes) > 0 {
		ids = a.leave(&in.root.exits, in.dropped, 0, a.after(frame), ids)
	}
	if len(in.exits.nodes) > 0 {
		ids = a.leave(&in.exits, nil, 0, a.after(frame), ids)
	}
	return ids
}

// besideText appends the tokens that a configuration allows without spelling
// them.
func (a *Automaton) besideText(id int32, ids []int32) []int32 {
	c := &a.configs[id]
	if c.ends {
		ids = append(ids, a.vocab.ends...)
	}
	if c.tokens {
		for _, it := range a.of(c.items) {
			for _, e := range a.program.tokensOf(it.state) {
				if !e.not {
					ids = append(ids, e.token)
				}
			}
		}
	}
	return ids
}

// addOthers adds the tokens that may stand for any token but one, and tells
// whether there is such a place.
func (a *Automaton) addOthers(id int32, mask []uint64) bool {
	found := false
	if !a.configs[id].tokens {
		return false
	}
	for _, it := range a.of(a.configs[id].items) {
		for _, e := range a.program.tokensOf(it.state) {
			if !e.not {
				continue
			}
			found = true
			kept := e.token == noToken || hasBit(mask, e.token)
			for i, w := range a.vocab.others {
				mask[i] |= w
			}
			if !kept {
				clearBit(mask, e.token)
			}
		}
	}
	return found
}

// join makes a mask of inner masks.
func (a *Automaton) join(parts []int32, mask []uint64) {
	if len(parts) == 0 {
		clear(mask)
		return
	}
	a.inners[parts[0]].copyTo(mask)
	for _, part := range parts[1:] {
		a.inners[part].addTo(mask, a.fill.other)
	}
}

// assemble makes the mask of a recipe.
func (a *Automaton) assemble(r *recipe, mask []uint64) {
	if r.whole >= 0 {
		copy(mask, a.recipes.whole[r.whole])
	} else {
		a.join(a.recipes.parts[r.parts.from:r.parts.to], mask)
		setBits(mask, a.recipes.ids[r.ids.from:r.ids.to])
	}
	for _, t := range a.recipes.ids[r.less.from:r.less.to] {
		clearBit(mask, t)
	}
}
