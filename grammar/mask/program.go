package mask

import (
	"maps"
	"slices"

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
