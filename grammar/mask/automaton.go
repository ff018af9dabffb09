package mask

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/b3os/b3infer/grammar"
)

// ErrNotAllowed is returned for a token that is not in the mask.
var ErrNotAllowed = errors.New("the grammar does not allow the token")

// ErrDeadEnd is returned where the grammar goes on, and no token of the
// vocabulary spells how.
var ErrDeadEnd = errors.New("no token of the vocabulary leads on")

// ErrTooComplex is returned where a limit was met. The sequence is as before.
var ErrTooComplex = errors.New("the grammar is too complex")

var (
	errItems          = fmt.Errorf("%w: too many readings of one text", ErrTooComplex)
	errConfigurations = fmt.Errorf("%w: too many situations in one step", ErrTooComplex)
	errMemory         = fmt.Errorf("%w: too many situations for its memory", ErrTooComplex)
)

// Limits bounds what an Automaton may cost. Zero fields mean the defaults.
type Limits struct {
	// Items is how many places in the grammar one text may stand at: 4,096.
	Items int
	// Configurations is how many new ones a single call may lead to: 20,000,
	// which take about 30 ms.
	Configurations int
	// Memory is the bytes that an Automaton holds: 32 MiB. Beyond it, it forgets
	// all that it worked out and starts afresh.
	Memory int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Items:          cmp.Or(l.Items, 4096),
		Configurations: cmp.Or(l.Configurations, 20_000),
		Memory:         cmp.Or(l.Memory, 32<<20),
	}
}

// An Automaton is a grammar prepared for one vocabulary, and what was worked out
// of it so far. It may be used by any number of goroutines.
type Automaton struct {
	vocab   *Vocabulary
	grammar *grammar.Grammar
	limits  Limits
	bytes   atomic.Int64 // size, as of the last call

	mu      sync.Mutex // guards all below
	program *program
	store
	moves      transitions
	closure    closure
	memories   memories
	recipes    recipes
	forcedRuns forcedRuns
	lengthened map[uint64]int32 // what Lengthen gave, by configuration and token
	mixture    mixture
	inners     []*inner // of configurations that have no frame but bottom
	innerAt    int      // bytes of inners

	first int32 // the configuration at the start of the text
	epoch uint32
	uses  int   // calls since the epoch began
	made  int   // configurations made by this call
	fault error // why this call cannot go on

	fill    fill
	bases   int    // inner masks that are being worked out for another one
	locals  []item // scratch
	scratch []int32
	moved   []int32 // scratch
}

// New prepares a grammar. It fails only where the grammar's very start is too
// complex.
func New(g *grammar.Grammar, v *Vocabulary, l Limits) (*Automaton, error) {
	a := newAutomaton(g, v, l)
	return a, a.fault
}

func newAutomaton(g *grammar.Grammar, v *Vocabulary, l Limits) *Automaton {
	a := &Automaton{vocab: v, grammar: g, limits: l.withDefaults()}
	a.fill.init(v)
	a.restart()
	return a
}

// restart forgets all that was worked out and begins a new epoch.
func (a *Automaton) restart() {
	a.program = a.vocab.shared.extended(a.grammar)
	a.store, a.moves, a.recipes, a.inners, a.innerAt = store{}, transitions{}, recipes{}, nil, 0
	a.forcedRuns, a.lengthened = forcedRuns{}, nil
	a.store.reset()
	a.moves.reset()
	if a.memories = (memories{}); a.program.remembers {
		a.memories.reset()
	}
	a.epoch++
	a.uses = 0
	a.made, a.fault = 0, nil
	root := a.program.entry(a.program.rule(ruleKey{grammar.Ref(0), noTail}, grammar.Ref(0)), 0)
	c := &a.closure
	c.start()
	if a.call(callEdge{root, noState}, 0, bottom) {
		c.roots = append(c.roots, root)
	}
	c.ends = a.program.nullable[0]
	a.first = a.close()
	a.bytes.Store(int64(a.size()))
}

// The least calls between two new epochs. An automaton that forgets more often
// than that has no use for its memory.
const minEpoch = 100

// enter begins a call that holds mu. It reports a fault where the memory that is
// allowed does not do.
func (a *Automaton) enter() error {
	a.made, a.fault = 0, nil
	size := a.size()
	a.bytes.Store(int64(size))
	if a.uses++; size <= a.limits.Memory {
		return nil
	}
	if a.epoch > 1 && a.uses < minEpoch {
		return errMemory
	}
	a.restart()
	return a.fault
}

// size is about how many bytes the automaton holds.
func (a *Automaton) size() int {
	return a.program.size() + a.store.bytes() + a.moves.bytes() + a.recipes.bytes() + a.memories.bytes() + a.fill.bytes() + a.forcedRuns.size + lengthenedBytes*len(a.lengthened) + a.innerAt
}

// Bytes is about how much memory the automaton held beside its grammar when it
// was last used.
func (a *Automaton) Bytes() int { return int(a.bytes.Load()) }

// Stats is what an automaton has worked out so far.
type Stats struct {
	States         int // of the rules that were met
	Configurations int
	Frames         int
	InnerMasks     int
	Bytes          int
	Epoch          int // how often it started afresh, from 1
}

// Stats tells what the automaton has worked out so far.
func (a *Automaton) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Stats{
		States: len(a.program.states), Configurations: len(a.configs), Frames: len(a.frames),
		InnerMasks: len(a.inners), Bytes: a.size(), Epoch: int(a.epoch),
	}
}

// fail notes why the call cannot go on.
func (a *Automaton) fail(err error) {
	if a.fault == nil {
		a.fault = err
	}
}
