package grammar

import (
	"errors"
	"slices"
)

var (
	errOwed     = errors.New("asks for several members that only their values tell apart")
	errFreeKeys = errors.New("asks for more members than it names, and a free name may come twice")
	errOptional = errors.New("has too many optional properties")
	errKey      = errors.New("asks for a member whose key the chat template cannot write")
)

// maxOptional bounds the optional properties of an object: where they begin, each
// of them may be next.
const maxOptional = 4000

// maxObjectStates bounds the states of one object: keys times what is owed.
const maxObjectStates = 10_000

// objects spells a union of objects. Of several that say in different ways what
// a value may be, those that cannot be spelled are left out.
func (e *emitter) objects(os []*object, t *term, name string) ([]Node, error) {
	mode := e.modeOf(len(os), func(i, j int) bool { return e.c.objectsApart(os[i], os[j], apartDepth) })
	if mode == spellOnce && slices.ContainsFunc(os, func(o *object) bool { return len(o.owed) > 0 }) {
		mode = spellOnceAnywhere // what is owed may be paid in several ways
	}
	defer e.enter(mode)()
	var alt []Node
	var refused error
	for _, o := range os {
		o, err := e.c.writable(o)
		if errors.Is(err, errKey) {
			refused = e.blame(err, t, "required")
			continue
		}
		if err != nil {
			return nil, err
		}
		settled, err := e.settle(o)
		if err != nil {
			return nil, err
		}
		for _, s := range settled {
			n, err := e.object(s, t, name)
			switch {
			case errors.Is(err, errFreeKeys):
				refused = e.blame(err, t, "minProperties")
			case errors.Is(err, errOwed):
				refused = err
			case err != nil:
				return nil, err
			default:
				alt = append(alt, n)
			}
		}
	}
	if len(alt) == 0 {
		return nil, refused
	}
	return alt, nil
}

// object spells objects: the declared keys in order, then free ones.
func (e *emitter) object(o *object, t *term, name string) (Node, error) {
	if len(o.owed) > 1 {
		return nil, errOwed
	}
	free, err := e.free(o)
	if err != nil {
		return nil, err
	}
	w := objectWriter{e: e, o: o, name: name, formulas: map[string]*formula{}, values: make([]Node, len(o.keys))}
	var needs *formula
	w.required, needs = o.needs.split()
	if len(o.keys)-len(w.required) > maxOptional {
		return nil, e.blame(errOptional, t, "properties")
	}
	if w.member, err = e.members(free, name, nil); err != nil {
		return nil, err
	}
	if len(o.owed) == 1 {
		if w.owed, err = e.members(o.owed, name, nil); err != nil {
			return nil, err
		}
	} else if o.min > 1 && e.c.unique && e.mode == spellFreely {
		if err := w.differing(free); err != nil {
			return nil, err
		}
	}
	w.at(objectState{needs: needs})
	if err := w.grow(maxObjectStates, errRules, w.expand); err != nil {
		return nil, err
	}
	if w.refused && !e.c.strict {
		err = e.relax(errFreeKeys, t, "minProperties")
	} else if w.refused && !w.ends() {
		err = errFreeKeys
	}
	if err != nil {
		return nil, err
	}
	return sequence(Literal("{"), w.graph.node(&e.ruleList, name), Literal("}")), nil
}

// differing prepares for free members whose keys must differ to be counted.
func (w *objectWriter) differing(free []class) (err error) {
	w.names = manyTexts
	for _, cl := range free {
		w.names = min(w.names, cl.dfa.count())
	}
	w.differ, err = w.e.members(free, w.name, func(key Node) Node { return Item{key} })
	return err
}

// members spells one member of any of the classes, or is nil without classes. The
// key may be wrapped.
func (e *emitter) members(classes []class, name string, wrap func(Node) Node) (Node, error) {
	var alt []Node
	for _, cl := range classes {
		k, err := e.keys(cl.dfa)
		if err != nil {
			return nil, err
		}
		v, err := e.value(cl.term, name+"-value")
		if err != nil {
			return nil, err
		}
		if wrap != nil {
			k = wrap(k)
		}
		alt = append(alt, sequence(k, Literal(e.c.colon), v))
	}
	if alt == nil {
		return nil, nil
	}
	return alternatives(alt...), nil
}

// keys spells the keys of a language.
func (e *emitter) keys(d *DFA) (Node, error) {
	if e.c.notation != nil {
		return lexeme(d), nil
	}
	return e.quoted(d)
}

// An objectState is how far an object has come.
type objectState struct {
	next    int      // the declared key that is due
	needs   *formula // of the keys from next on, beside the required ones
	count   int      // members so far, as far as a limit on them makes it matter
	started bool     // there was a member
}

type objectWriter struct {
	e      *emitter
	o      *object
	name   string
	member Node   // a free member, nil if there can be none
	owed   Node   // the free member that must be there, nil if none must
	differ Node   // a free member of a Unique, if several may have to be there
	names  int    // how many free keys there are, up to manyTexts
	values []Node // of the declared keys, once they are needed

	required map[string]bool
	formulas map[string]*formula // by their keys
	refused  bool                // some way needs free keys that differ
	stateGraph[objectState]
}

// at is the number of a state. Equal formulas become one, so that their states are equal.
func (w *objectWriter) at(s objectState) int {
	if known, ok := w.formulas[s.needs.key]; ok {
		s.needs = known
	}
	w.formulas[s.needs.key] = s.needs
	return w.id(s)
}

// counted is the count after one more member, no further than it matters.
func (w *objectWriter) counted(n int) int {
	limit := w.o.max
	if limit == Unbounded {
		limit = w.o.min
	}
	return min(n+1, limit)
}

func (w *objectWriter) expand(i int) error {
	s := w.states[i]
	if err := w.e.c.meter.spend(50 + len(s.needs.key)); err != nil {
		return err
	}
	if s.next == len(w.o.keys) {
		w.graph[i].final = w.tail(s)
		return nil
	}
	k := w.o.keys[s.next]
	present, absent := s.needs.given(k.name, true), s.needs.given(k.name, false)
	if w.required[k.name] {
		absent = formulaFalse
	}
	full := w.o.max != Unbounded && s.count >= w.o.max
	if present != formulaFalse && k.term != w.e.c.none && !full {
		label, err := w.declared(s)
		if err != nil {
			return err
		}
		to := w.at(objectState{s.next + 1, present, w.counted(s.count), true})
		w.graph[i].edges = append(w.graph[i].edges, graphEdge{label, to})
	}
	if absent != formulaFalse {
		to := w.at(objectState{s.next + 1, absent, s.count, s.started})
		w.graph[i].edges = append(w.graph[i].edges, graphEdge{Seq{}, to})
	}
	return nil
}

// declared spells the member that is due.
func (w *objectWriter) declared(s objectState) (Node, error) {
	k := w.o.keys[s.next]
	if w.values[s.next] == nil {
		v, err := w.e.value(k.term, w.name+"-"+sanitize(k.name))
		if err != nil {
			return nil, err
		}
		w.values[s.next] = v
	}
	text := w.e.c.key(k.name)
	if s.started {
		text = w.e.c.comma + text
	}
	return sequence(Literal(text), w.values[s.next]), nil
}

// tail spells the free members, or is nil where the object cannot end so.
func (w *objectWriter) tail(s objectState) Node {
	if s.needs != formulaTrue {
		return nil
	}
	least, most := max(w.o.min-s.count, 0), w.o.max
	if most != Unbounded {
		most -= s.count
	}
	if w.owed != nil {
		least = max(least, 1)
	}
	if e := w.e; e.mode != spellFreely && (w.member != nil || w.owed != nil) {
		most = minBound(most, 1) // several could come in any order
	}
	switch {
	case w.member == nil && w.owed == nil && least > 0, most != Unbounded && most < least:
		return nil
	case w.member == nil && w.owed == nil:
		return Seq{}
	case least > 1 && w.differ != nil:
		return w.several(s.started, least, most)
	case least > 1 && w.e.c.strict:
		// A free name may come twice, which parsers count once.
		w.refused = true
		return nil
	case least > 1:
		w.refused = true
	}
	return w.free(w.member, s.started, least, most)
}

// several spells at least so many free members with different keys.
func (w *objectWriter) several(started bool, least, most int) Node {
	if w.names < manyTexts {
		most = minBound(most, w.names)
	}
	if most != Unbounded && most < least {
		return nil
	}
	return Unique{w.free(w.differ, started, least, most)}
}

// ends tells whether there is a way to the end of the object.
func (w *objectWriter) ends() bool {
	return slices.ContainsFunc(w.graph, func(s graphState) bool { return s.final != nil })
}

func (w *objectWriter) free(member Node, started bool, least, most int) Node {
	comma := Literal(w.e.c.comma)
	fewer := func(n int) int {
		if most == Unbounded {
			return Unbounded
		}
		return most - n
	}
	switch {
	case w.owed != nil && started:
		return sequence(repeated(sequence(comma, member), least-1, fewer(1)), comma, w.owed)
	case w.owed != nil:
		return sequence(repeated(sequence(member, comma), least-1, fewer(1)), w.owed)
	case started:
		return repeated(sequence(comma, member), least, most)
	case most == 0:
		return Seq{}
	}
	n := sequence(member, repeated(sequence(comma, member), max(least-1, 0), fewer(1)))
	if least == 0 {
		n = optional(n)
	}
	return n
}
