package grammar

import "errors"

// The limits that automata run into. Callers turn them into an *Unenforceable
// with the path.
var (
	errStates = errors.New("needs an automaton with too many states")
	errWork   = errors.New("takes too much work to compile")
)

// A meter counts the elementary steps of one compilation, so that a hostile
// input ends early and at the same place on every machine.
type meter struct{ left int }

// spend takes n steps. After an error every further spend fails too.
func (m *meter) spend(n int) error {
	m.left -= n
	if m.left < 0 {
		return errWork
	}
	return nil
}

// unmetered is for automata that are part of the program.
func unmetered() *meter { return &meter{left: 1 << 40} }
