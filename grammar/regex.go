package grammar

import (
	"errors"
	"slices"
)

var errLookaround = errors.New("looks ahead or behind in a place other than the pattern's very start or end")

// maxRegexStates bounds the non-deterministic automaton of a pattern.
const maxRegexStates = 1 << 15

// A pattern is a regular expression and the texts that contain a match of it.
type pattern struct {
	inner *DFA // the texts that match in every dialect
	wide  *wide
}

// compilePattern reads an ECMA-262 pattern, as JSON Schema's pattern means it.
func compilePattern(m *meter, source string, limit int) (*pattern, error) {
	re, err := parseRegex(source)
	if err != nil {
		return nil, err
	}
	return compileRegexPattern(m, re, limit)
}

// manyRounds is above what is worth a state for each character.
const manyRounds = 64

// compileBounded is compilePattern, but where a pattern has bounds on the whole
// length it gives the language without them, and the bounds: where it is nothing
// but many characters of one class, ^[…]{min,max}$, or looks ahead for the end,
// ^(?=.{min,max}$).
func compileBounded(m *meter, source string, limit int) (p *pattern, least, most int, err error) {
	re, err := parseRegex(source)
	if err != nil {
		return nil, 0, 0, err
	}
	parts, least, most := flatten(re), 0, Unbounded
	for i, part := range parts {
		look, ok := part.(reLook)
		if !ok || look.behind || look.deny || i != 1 || !asserts(parts[0], assertStart) {
			continue
		}
		if r, ok := countedToEnd(flatten(look.body)); ok {
			least, most = r.min, r.max
			parts[i] = reLook{body: reSeq{[]regex{reRepeat{r.body, 0, Unbounded}, reAssert{assertEnd}}}}
		}
	}
	if r, ok := countedToEnd(parts[min(1, len(parts)):]); ok && asserts(parts[0], assertStart) {
		least, most = r.min, r.max
		parts[1] = reRepeat{r.body, 0, Unbounded}
	}
	p, err = compileRegexPattern(m, reSeq{parts}, limit)
	return p, least, most, err
}

// countedToEnd tells whether a sequence is many characters of one class and the
// text's end.
func countedToEnd(parts []regex) (reRepeat, bool) {
	if len(parts) != 2 || !asserts(parts[1], assertEnd) {
		return reRepeat{}, false
	}
	r, ok := parts[0].(reRepeat)
	_, single := r.body.(reChars)
	return r, ok && single && max(r.min, r.max) > manyRounds
}

func compileRegexPattern(m *meter, re regex, limit int) (p *pattern, err error) {
	p = &pattern{}
	if p.inner, err = compileReading(m, re, readInner, limit); err != nil {
		return nil, err
	}
	if differs(re) {
		p.wide = &wide{make: func() (*DFA, error) { return compileReading(m, re, readOuter, limit) }}
	}
	return p, nil
}

// A reading takes all classes of a pattern for their inner or outer sets.
type reading bool

const (
	readInner reading = false
	readOuter reading = true
)

func (s charSet) read(r reading) runeSet {
	if r == readOuter {
		return s.outer
	}
	return s.inner
}

// differs tells whether a pattern has classes that dialects read differently.
func differs(re regex) bool {
	switch re := re.(type) {
	case reChars:
		return !slices.Equal(re.set.inner, re.set.outer)
	case reSeq:
		return slices.ContainsFunc(re.parts, differs)
	case reAlt:
		return slices.ContainsFunc(re.parts, differs)
	case reRepeat:
		return differs(re.body)
	case reLook:
		return differs(re.body)
	}
	return false
}

func compileReading(m *meter, re regex, r reading, limit int) (*DFA, error) {
	if alt, ok := re.(reAlt); ok && looks(re) {
		var sets []*DFA
		for _, part := range alt.parts {
			d, err := compileReading(m, part, r, limit)
			if err != nil {
				return nil, err
			}
			sets = append(sets, d)
		}
		return unionOf(m, sets, limit)
	}
	re, conditions := splitLooks(re)
	d, err := compileRegex(m, re, r, limit)
	for _, look := range conditions {
		if err != nil {
			return nil, err
		}
		d, err = look.constrain(m, d, r, limit)
	}
	return d, err
}

// looks tells whether there is a lookaround in a pattern.
func looks(re regex) bool {
	switch re := re.(type) {
	case reLook:
		return true
	case reSeq:
		return slices.ContainsFunc(re.parts, looks)
	case reAlt:
		return slices.ContainsFunc(re.parts, looks)
	case reRepeat:
		return looks(re.body)
	}
	return false
}

// splitLooks takes the lookarounds at the text's start (^(?=…) or (?=…)^) and
// end ((?<=…)$) out of a pattern: there they are conditions on the whole text.
// All others stay, and are refused when the pattern is compiled.
func splitLooks(re regex) (regex, []reLook) {
	if !looks(re) {
		return re, nil
	}
	parts := flatten(re)
	leading := 0
	for leading < len(parts) && (asserts(parts[leading], assertStart) || looksOn(parts[leading], false)) {
		leading++
	}
	trailing := len(parts)
	for trailing > leading && (asserts(parts[trailing-1], assertEnd) || looksOn(parts[trailing-1], true)) {
		trailing--
	}
	head, before := takeLooks(parts[:leading], assertStart)
	tail, after := takeLooks(parts[trailing:], assertEnd)
	return reSeq{slices.Concat(head, parts[leading:trailing], tail)}, append(before, after...)
}

// flatten is the pattern as one sequence.
func flatten(re regex) []regex {
	seq, ok := re.(reSeq)
	if !ok {
		return []regex{re}
	}
	var out []regex
	for _, p := range seq.parts {
		out = append(out, flatten(p)...)
	}
	return out
}

// takeLooks separates lookarounds from assertions that stand in one place. They
// stay where they are if none of the assertions ties them to the text's edge.
func takeLooks(parts []regex, edge assertion) (rest []regex, conditions []reLook) {
	if !slices.ContainsFunc(parts, func(p regex) bool { return asserts(p, edge) }) {
		return parts, nil
	}
	for _, p := range parts {
		if look, ok := p.(reLook); ok {
			conditions = append(conditions, look)
		} else {
			rest = append(rest, p)
		}
	}
	return rest, conditions
}

func looksOn(re regex, behind bool) bool {
	look, ok := re.(reLook)
	return ok && look.behind == behind
}

func asserts(re regex, a assertion) bool {
	assert, ok := re.(reAssert)
	return ok && assert.assertion == a
}

// constrain takes from d the texts that the lookaround forbids.
func (l reLook) constrain(m *meter, d *DFA, r reading, limit int) (*DFA, error) {
	parts := []regex{reAssert{assertStart}, l.body}
	if l.behind {
		parts = []regex{l.body, reAssert{assertEnd}}
	}
	op := opAnd
	if l.deny {
		op, r = opMinus, !r
	}
	look, err := compileRegex(m, reSeq{parts}, r, limit)
	if err != nil {
		return nil, err
	}
	return combine(m, d, look, op, limit)
}

// compileRegex is the language of the texts that contain a match.
func compileRegex(m *meter, re regex, r reading, limit int) (*DFA, error) {
	n := &nfa{}
	start := n.state()
	n.on(start, anyRune, start)
	body := n.state()
	n.empty(start, body)
	b := regexBuilder{nfa: n, meter: m, reading: r}
	end, err := b.build(re, body)
	if err != nil {
		return nil, err
	}
	// Once matched, the rest does not matter.
	n.accept[end] = true
	n.on(end, anyRune, end)
	return n.determinize(m, limit)
}

type regexBuilder struct {
	nfa     *nfa
	meter   *meter
	reading reading
}

// build adds the automaton of re behind state from and returns its end.
func (b *regexBuilder) build(re regex, from int32) (int32, error) {
	if len(b.nfa.arcs) > maxRegexStates {
		return 0, errStates
	}
	if err := b.meter.spend(10); err != nil {
		return 0, err
	}
	switch re := re.(type) {
	case reChars:
		to := b.nfa.state()
		b.nfa.on(from, re.set.read(b.reading), to)
		return to, nil
	case reAssert:
		to := b.nfa.state()
		b.nfa.assert(from, re.assertion, to)
		return to, nil
	case reSeq:
		var err error
		for _, part := range re.parts {
			if from, err = b.build(part, from); err != nil {
				break
			}
		}
		return from, err
	case reAlt:
		return b.alternatives(re, from)
	case reRepeat:
		return b.repeat(re, from)
	}
	return 0, errLookaround
}

func (b *regexBuilder) alternatives(re reAlt, from int32) (int32, error) {
	to := b.nfa.state()
	for _, part := range re.parts {
		start := b.nfa.state()
		b.nfa.empty(from, start)
		end, err := b.build(part, start)
		if err != nil {
			return 0, err
		}
		b.nfa.empty(end, to)
	}
	return to, nil
}

func (b *regexBuilder) repeat(re reRepeat, from int32) (int32, error) {
	var err error
	for range re.min {
		if from, err = b.build(re.body, from); err != nil {
			return 0, err
		}
	}
	if re.max == Unbounded {
		loop := b.nfa.state()
		b.nfa.empty(from, loop)
		end, err := b.build(re.body, loop)
		b.nfa.empty(end, loop)
		return loop, err
	}
	to := b.nfa.state()
	b.nfa.empty(from, to)
	for range re.max - re.min {
		if from, err = b.build(re.body, from); err != nil {
			return 0, err
		}
		b.nfa.empty(from, to)
	}
	return to, nil
}

// compileLexeme is the language of a pattern that must match the whole text.
// It is for patterns that are part of the program.
func compileLexeme(source string) *DFA {
	p, err := compilePattern(unmetered(), "^(?:"+source+")$", 1<<16)
	if err != nil {
		panic(err)
	}
	return p.inner
}
