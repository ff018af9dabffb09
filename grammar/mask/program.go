package mask

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/b3os/b3infer/grammar"
)

// A program is the states of the rules that were called so far, in lists
// without pointers. It only grows.
type program struct {
	vocab    *Vocabulary
	grammar  *grammar.Grammar
	nullable []bool // of the grammar's rules
	memorize []bool // of the grammar's rules: whether a Unique or an Item is in it
	facts    []ruleFacts

	states []state // and one more, where the lists end
	bytes  []byteEdge
	calls  []callEdge
	tokens []tokenEdge
	jumps  []int32
	loops  []loop
	bags   []bag

	rules   []rule
	ruleOf  map[ruleKey]int32
	entries []entry
	entryOf map[entryKey]int32
	starts  []startItem
	begins  []startCall

	stringRest int32 // the state inside a free JSON string
	remembers  bool  // there is a Unique
}

// A state's edges are those from its offsets to the next state's.
type state struct {
	bytes, calls, tokens, jumps uint32
	param                       int32 // index in loops or bags
	run                         run
	kind                        stateKind
	flags                       stateFlags
}

// A stateKind says what happens at a state that is not left by its edges.
type stateKind uint8

const (
	stateEdges     stateKind = iota
	stateLoopHead            // go round once more, or leave the loop
	stateLoopEnd             // one round is done: count it, then as the head
	stateBagChoose           // begin any item that may come
	stateBagEnd              // an item is done: leave, or go on to the separator
)

type stateFlags uint16

const (
	flagFinal      stateFlags = 1 << iota // the rule may end here
	flagCounted                           // the register counts rounds
	flagAbsorbs                           // stays alive on any text of plain characters
	flagAbsorbsBy                         // the same, one round of the loop for each character
	flagRunsBy                            // each byte of the run is one round of the loop
	flagEndsUnique                        // what ends is a Unique
	flagEndsItem                          // what ends is an Item
	flagMemorizes                         // what the rule does depends on what was read before
)

// change is what leaving a rule at a state does to the memory.
func (f stateFlags) change() memoryChange {
	switch {
	case f&flagEndsUnique != 0:
		return changeUnique
	case f&flagEndsItem != 0:
		return changeItem
	}
	return changeNothing
}

// A byteEdge leads to a state on the bytes from lo to hi.
type byteEdge struct {
	to     int32
	lo, hi byte
}

// A callEdge enters a rule and goes on at to when it has ended. It is noState
// where nothing but the caller's own end would follow: then the rule called
// ends for the caller.
type callEdge struct{ entry, to int32 }

const noState = -1

// A tokenEdge leads to a state on one token, or on any other token.
type tokenEdge struct {
	token, to int32
	not       bool
}

// A loop is the only one of its rule; the register counts it.
type loop struct{ body, exit int32 }

// A bag is the only one of its rule; the register is the set of its items that
// were begun.
type bag struct {
	items     []int32
	separator int32
	exit      int32
	required  uint64
	min, max  int
}

// A rule is a part of the grammar with states of its own.
type rule struct {
	key    ruleKey
	node   grammar.Node // what it spells, before the tail
	start  int32        // its first state, noState until it is built
	change memoryChange // of entering it
}

// A ruleKey tells rules apart: by the node or what stands for it, and by the
// byte that the rule takes in after its end.
type ruleKey struct {
	node any   // grammar.Ref, *grammar.DFA, loopKey, or ownKey
	tail int16 // the byte, or noTail
}

// A loopKey is the body of a counted loop: its bounds are in the register.
type loopKey struct {
	dfa   *grammar.DFA
	class string
}

const noTail = -1

// An ownKey is for a rule that is called from one place: its number.
type ownKey int

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

// The register of a loop: the rounds that it must still make, and those that it
// may. Unlimited ones are not counted.
func rounds(need, left uint32) uint64 { return uint64(need)<<32 | uint64(left) }

func roundsOf(register uint64) (need, left uint32) { return uint32(register >> 32), uint32(register) }

const unlimited = 1<<32 - 1

// repeatRegister is the register that a counted loop begins with.
func repeatRegister(least, most int) uint64 {
	left := uint32(unlimited)
	if most != grammar.Unbounded {
		left = uint32(min(most, unlimited-1))
	}
	return rounds(uint32(min(least, unlimited-1)), left)
}

// countRound takes one round off.
func countRound(register uint64) uint64 {
	need, left := roundsOf(register)
	if need > 0 && need != unlimited {
		need--
	}
	if left != unlimited {
		left--
	}
	return rounds(need, left)
}

// newProgram is a program of no rules.
func newProgram(v *Vocabulary) *program {
	return &program{
		vocab:      v,
		states:     make([]state, 1),
		ruleOf:     map[ruleKey]int32{},
		entryOf:    map[entryKey]int32{},
		stringRest: noState,
	}
}

// size is about how many bytes the program holds.
func (p *program) size() int {
	return 36*cap(p.states) + 8*(cap(p.bytes)+cap(p.calls)) + 12*cap(p.tokens) + 4*cap(p.jumps) +
		150*len(p.rules) + 96*len(p.entries) + 16*cap(p.starts) + 24*cap(p.begins)
}

// extended is a copy for a grammar: all states keep their numbers.
func (p *program) extended(g *grammar.Grammar) *program {
	n := *p
	n.grammar, n.nullable, n.memorize = g, g.Nullable(), memorizing(g)
	n.remembers = slices.Contains(n.memorize, true)
	n.facts = make([]ruleFacts, len(g.Rules))
	n.states, n.bytes = slices.Clone(p.states), slices.Clone(p.bytes)
	n.calls, n.tokens, n.jumps = slices.Clone(p.calls), slices.Clone(p.tokens), slices.Clone(p.jumps)
	n.loops, n.bags = slices.Clone(p.loops), slices.Clone(p.bags)
	n.rules, n.ruleOf = slices.Clone(p.rules), maps.Clone(p.ruleOf)
	n.entries, n.entryOf = slices.Clone(p.entries), maps.Clone(p.entryOf)
	n.starts, n.begins = slices.Clone(p.starts), slices.Clone(p.begins)
	return &n
}

// The edges of a state.

func (p *program) bytesOf(s int32) []byteEdge {
	return p.bytes[p.states[s].bytes:p.states[s+1].bytes]
}

func (p *program) callsOf(s int32) []callEdge {
	return p.calls[p.states[s].calls:p.states[s+1].calls]
}

func (p *program) tokensOf(s int32) []tokenEdge {
	return p.tokens[p.states[s].tokens:p.states[s+1].tokens]
}

func (p *program) jumpsOf(s int32) []int32 {
	return p.jumps[p.states[s].jumps:p.states[s+1].jumps]
}

// rule is the number of a rule, which is made if it is new.
func (p *program) rule(key ruleKey, n grammar.Node) int32 {
	if id, ok := p.ruleOf[key]; ok {
		return id
	}
	id := int32(len(p.rules))
	p.ruleOf[key] = id
	p.rules = append(p.rules, rule{key, n, noState, changeOf(n)})
	return id
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

// tokenNumber reads the form <[N]>.
func tokenNumber(text string) (int32, bool) {
	digits, opened := strings.CutPrefix(text, "<[")
	digits, closed := strings.CutSuffix(digits, "]>")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int32(n), opened && closed && err == nil
}
