package mask

// A closure finds all items where a text may stand, from those where its last
// byte led. Its lists are kept between uses.
type closure struct {
	todo  []item // to be followed
	items []item // found, with edges of their own
	ends  bool

	seen  []item // places that were followed
	table []int32
	stamp []uint32
	round uint32

	called  []pendingCall // linked by entry
	pending []pendingEntry
	roots   []int32 // entries that were called by what was followed
	order   []int32 // all entries, callees before callers
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
	visited bool
}

// start begins a new closure.
func (c *closure) start() {
	c.todo, c.items, c.seen, c.called = c.todo[:0], c.items[:0], c.seen[:0], c.called[:0]
	c.roots, c.order, c.ends = c.roots[:0], c.order[:0], false
	c.round++
	if c.round == 0 { // after four thousand million closures: forget the old stamps
		clear(c.stamp)
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
	for c.stamp[i] == c.round {
		if c.seen[c.table[i]] == it {
			return false
		}
		i = (i + 1) & mask
	}
	c.table[i], c.stamp[i] = int32(len(c.seen)), c.round
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
	mask := uint64(size - 1)
	for id, it := range c.seen {
		i := hashItems([]item{it}) & mask
		for c.stamp[i] == c.round {
			i = (i + 1) & mask
		}
		c.table[i], c.stamp[i] = int32(id), c.round
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
	return a.intern(c.items, c.ends)
}

// follow takes one item as far as it goes without reading.
func (a *Automaton) follow(it item) {
	c, p := &a.closure, a.program
	if it.state == noState {
		c.ends = true
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
		c.todo = append(c.todo, a.of(a.frames[it.frame].returns)...)
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
	*e = pendingEntry{round: c.round, first: -1}
	return e, true
}

// call gives the entry the return of one caller, or those of the caller's frame
// where nothing is left of the caller. It tells whether this is the first call.
func (a *Automaton) call(call callEdge, register uint64, frame int32) bool {
	c := &a.closure
	e, first := c.entry(call.entry)
	if call.to != noState {
		c.called = append(c.called, pendingCall{item{register, call.to, frame}, e.first})
		e.first = int32(len(c.called) - 1)
		return first
	}
	for _, back := range a.of(a.frames[frame].returns) {
		c.called = append(c.called, pendingCall{back, e.first})
		e.first = int32(len(c.called) - 1)
	}
	return first
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

// begin makes the entry's frame, its items, and the calls that it begins with.
func (a *Automaton) begin(entry int32) {
	c, p := &a.closure, a.program
	c.returns = c.returns[:0]
	for i := c.pending[entry].first; i >= 0; i = c.called[i].next {
		c.returns = append(c.returns, c.called[i].back)
	}
	c.returns = sortItems(c.returns)
	frame := a.frameOf(c.returns)
	e := p.entries[entry]
	for _, it := range p.starts[e.starts.from:e.starts.to] {
		c.items = append(c.items, item{it.register, it.state, frame})
	}
	for _, call := range p.begins[e.calls.from:e.calls.to] {
		a.call(call.callEdge, call.register, frame)
	}
}
