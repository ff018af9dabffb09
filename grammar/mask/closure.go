package mask

// A closure finds all items where a text may stand, from those where its last
// byte led. Its lists are kept between uses.
type closure struct {
	todo  []item // to be followed
	items []item // found, with edges of their own

	ends   bool  // the rule at the bottom may end
	memory int32 // with which it may, or mixed

	seen  []item   // places that were followed
	table []int32  // a hash table of them, once they are more than a few
	stamp []uint32 // of the slots of table: those of another filling are empty
	fills uint32   // fillings of table so far
	round uint32   // closures so far

	called  []pendingCall // linked by entry
	pending []pendingEntry
	marked  []markedEntry // entries that were called with a memory
	roots   []int32       // entries that were called by what was followed
	order   []int32       // all entries, callees before callers
	returns []item
	forks   []startItem
}

// A pendingCall is a return that a called entry gets.
type pendingCall struct {
	back item
	next int32 // the next one of the same entry, or -1
}

// A pendingEntry is what this closure knows of an entry.
type pendingEntry struct {
	round   uint32 // of the closure that the rest is from
	first   int32  // of its returns in called, or -1
	marks   int32  // the first of those called with a memory in marked, or -1
	visited bool
}

// A markedEntry is what it knows of an entry that is called with a memory.
type markedEntry struct{ memory, first, next int32 }

// start begins a new closure.
func (c *closure) start() {
	c.todo, c.items, c.seen, c.called = c.todo[:0], c.items[:0], c.seen[:0], c.called[:0]
	c.roots, c.order, c.marked = c.roots[:0], c.order[:0], c.marked[:0]
	c.ends, c.memory = false, noMemory
	c.round++
	if c.round == 0 { // after four thousand million closures: forget the old ones
		clear(c.pending)
		c.round = 1
	}
}

// few is up to how many items are searched one by one.
const few = 12

// visit tells whether an item is new.
func (c *closure) visit(it item) bool {
	if len(c.seen) < few {
		for _, s := range c.seen {
			if s == it {
				return false
			}
		}
		c.seen = append(c.seen, it)
		return true
	}
	if len(c.seen) == few || 2*len(c.seen) >= len(c.table) {
		c.rehash()
	}
	mask := uint64(len(c.table) - 1)
	i := hashItems([]item{it}) & mask
	for c.stamp[i] == c.fills {
		if c.seen[c.table[i]] == it {
			return false
		}
		i = (i + 1) & mask
	}
	c.table[i], c.stamp[i] = int32(len(c.seen)), c.fills
	c.seen = append(c.seen, it)
	return true
}

// rehash puts what was seen into a table that is large enough.
func (c *closure) rehash() {
	size := max(len(c.table), 64)
	for 4*len(c.seen) >= size {
		size *= 2
	}
	if size > len(c.table) {
		c.table, c.stamp = make([]int32, size), make([]uint32, size)
	}
	if c.fills++; c.fills == 0 {
		clear(c.stamp)
		c.fills = 1
	}
	mask := uint64(size - 1)
	for id, it := range c.seen {
		i := hashItems([]item{it}) & mask
		for c.stamp[i] == c.fills {
			i = (i + 1) & mask
		}
		c.table[i], c.stamp[i] = int32(id), c.fills
	}
}

// close works out the configuration of the items in todo.
//
// First all returns are followed, out of the frames that exist, and calls are
// collected. Then the called rules are entered, callers before callees, so that
// each gets one frame with all its returns. Entering never returns: a caller of
// a rule with the empty text has a way past it. The new frames may be old ones,
// which is harmless only because nothing returns any more.
func (a *Automaton) close() int32 {
	c := &a.closure
	for len(c.todo) > 0 && len(c.seen) <= a.limits.Items {
		it := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		a.follow(it)
	}
	for _, entry := range c.roots {
		a.sort(entry)
	}
	for i := len(c.order) - 1; i >= 0 && len(c.items) <= a.limits.Items; i-- {
		a.begin(c.order[i])
	}
	if len(c.items) > a.limits.Items || len(c.seen) > a.limits.Items {
		a.fail(errItems)
		return dead
	}
	c.items = sortItems(c.items)
	return a.intern(c.items, c.ends, c.memory)
}

// follow takes one item as far as it goes without reading.
func (a *Automaton) follow(it item) {
	c, p := &a.closure, a.program
	if it.state == noState {
		c.end(a.frames[it.frame].memory)
		return
	}
	if p.states[it.state].kind != stateEdges {
		c.forks = p.fork(startItem{it.register, it.state}, c.forks[:0])
		for _, to := range c.forks {
			c.todo = append(c.todo, item{to.register, to.state, it.frame})
		}
		return
	}
	if !c.visit(it) {
		return
	}
	if p.hasEdges(it.state) {
		c.items = append(c.items, it)
	}
	for _, to := range p.jumpsOf(it.state) {
		c.todo = append(c.todo, item{it.register, to, it.frame})
	}
	for _, call := range p.callsOf(it.state) {
		if a.call(call, it.register, it.frame) {
			c.roots = append(c.roots, call.entry)
		}
	}
	if p.states[it.state].flags&flagFinal != 0 {
		a.leaveRule(it)
	}
}

// end notes that the rule at the bottom may end.
func (c *closure) end(memory int32) {
	if c.ends && c.memory != memory {
		memory = mixed
	}
	c.ends, c.memory = true, memory
}

// leaveRule goes on at the returns of an item whose rule ends.
func (a *Automaton) leaveRule(it item) {
	c := &a.closure
	returns := a.of(a.frames[it.frame].returns)
	if !a.program.remembers {
		c.todo = append(c.todo, returns...)
		return
	}
	memory := a.memories.leave(a.frames[it.frame].memory, a.program.states[it.state].flags.change())
	if memory == lost {
		return
	}
	for _, back := range returns {
		c.todo = append(c.todo, item{back.register, back.state, a.framed(back.frame, memory)})
	}
}

// entry is what is known of an entry, and whether that is still nothing.
func (c *closure) entry(id int32) (*pendingEntry, bool) {
	for int(id) >= len(c.pending) {
		c.pending = append(c.pending, pendingEntry{})
	}
	e := &c.pending[id]
	if e.round == c.round {
		return e, false
	}
	*e = pendingEntry{round: c.round, first: -1, marks: -1}
	return e, true
}

// call gives the entry the return of one caller, or those of the caller's frame
// where nothing is left of the caller. It tells whether this is the first call.
func (a *Automaton) call(call callEdge, register uint64, frame int32) bool {
	c := &a.closure
	e, isNew := c.entry(call.entry)
	first := &e.first
	if memory := a.frames[frame].memory; memory != noMemory {
		first = c.mark(e, memory)
	}
	if call.to != noState {
		c.called = append(c.called, pendingCall{item{register, call.to, a.frames[frame].base}, *first})
		*first = int32(len(c.called) - 1)
		return isNew
	}
	for _, back := range a.of(a.frames[frame].returns) {
		c.called = append(c.called, pendingCall{back, *first})
		*first = int32(len(c.called) - 1)
	}
	return isNew
}

// mark is where the returns of an entry begin that is called with a memory.
func (c *closure) mark(e *pendingEntry, memory int32) *int32 {
	for i := e.marks; i >= 0; i = c.marked[i].next {
		if m := &c.marked[i]; m.memory == memory {
			return &m.first
		}
	}
	c.marked = append(c.marked, markedEntry{memory, -1, e.marks})
	e.marks = int32(len(c.marked) - 1)
	return &c.marked[e.marks].first
}

// sort puts an entry into the order behind all that it begins with. No rule
// begins with itself.
func (a *Automaton) sort(entry int32) {
	c := &a.closure
	e, _ := c.entry(entry)
	if e.visited {
		return
	}
	e.visited = true
	calls := a.program.opened(entry).calls
	for i := calls.from; i < calls.to; i++ {
		a.sort(a.program.begins[i].entry)
	}
	c.order = append(c.order, entry)
}

// begin enters a rule, for each memory that it was called with.
func (a *Automaton) begin(entry int32) {
	c := &a.closure
	if first := c.pending[entry].first; first >= 0 {
		a.beginWith(entry, noMemory, first)
	}
	for i := c.pending[entry].marks; i >= 0; i = c.marked[i].next {
		a.beginWith(entry, c.marked[i].memory, c.marked[i].first)
	}
}

// beginWith makes the entry's frame, its items, and the calls that it begins with.
func (a *Automaton) beginWith(entry, memory, first int32) {
	c, p := &a.closure, a.program
	c.returns = c.returns[:0]
	for i := first; i >= 0; i = c.called[i].next {
		c.returns = append(c.returns, c.called[i].back)
	}
	c.returns = sortItems(c.returns)
	frame := a.frameOf(c.returns)
	e := p.entries[entry]
	if p.remembers {
		frame = a.framed(frame, a.memories.enter(memory, p.rules[e.rule].change))
	}
	for _, it := range p.starts[e.starts.from:e.starts.to] {
		c.items = append(c.items, item{it.register, it.state, frame})
	}
	for _, call := range p.begins[e.calls.from:e.calls.to] {
		a.call(call.callEdge, call.register, frame)
	}
}
