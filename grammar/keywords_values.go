package grammar

import (
	"fmt"
	"slices"
)

// valueShape is the set of the given values.
func (c *compiler) valueShape(values []*value) (*shape, error) {
	out := emptyShape()
	var strings []string
	var numbers []decimal
	for _, v := range values {
		switch v.kind {
		case kindNumber:
			d, err := parseDecimal(v.text)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, d)
		case kindString:
			strings = append(strings, v.text)
		case kindArray:
			out.arrays = append(out.arrays, c.valueArray(v))
		case kindObject:
			out.objects = append(out.objects, c.valueObject(v))
		default:
			out.basic[v.kind] = true
		}
	}
	if max(len(out.arrays), len(out.objects)) > c.limits.Branches {
		return nil, errBranches
	}
	var err error
	if out.numbers, err = literalNumbers(c.meter, numbers, c.limits.Product); err != nil {
		return nil, err
	}
	if len(strings) > 0 {
		dfa, err := trie(c.meter, strings, c.limits.Product)
		if err != nil {
			return nil, err
		}
		out.strings = []text{{dfa: dfa, max: Unbounded}}
	}
	return out, nil
}

func (c *compiler) valueArray(v *value) *array {
	n := len(v.items)
	a := &array{rest: item{term: c.none}, min: n, max: n}
	for i := range v.items {
		a.prefix = append(a.prefix, item{term: c.valueTerm(&v.items[i])})
	}
	return a
}

func (c *compiler) valueObject(v *value) *object {
	o := &object{max: Unbounded, needs: formulaTrue}
	needs := make([]*formula, len(v.members))
	for i := range v.members {
		m := &v.members[i]
		o.keys = append(o.keys, key{name: m.key, term: c.valueTerm(&m.value)})
		needs[i] = hasKey(m.key)
	}
	o.needs = allOf(needs...)
	return o
}

// decimalOf reads a keyword that is a number; present is false without it.
func (b *shaper) decimalOf(keyword string) (d decimal, present bool, err error) {
	v := b.s.get(keyword)
	if v == nil {
		return d, false, nil
	}
	if v.kind != kindNumber {
		return d, false, b.s.invalid(keyword, "must be a number")
	}
	d, err = parseDecimal(v.text)
	return d, true, b.c.blame(err, b.s, keyword)
}

// countOf reads a keyword that is a count, or gives absent.
func (b *shaper) countOf(keyword string, absent int) (int, error) {
	d, present, err := b.decimalOf(keyword)
	if err != nil || !present {
		return absent, err
	}
	n, ok := d.count()
	if !ok {
		return 0, b.s.invalid(keyword, "must be a whole number, not below 0")
	}
	return n, nil
}

// countsOf reads a pair of keywords that are counts.
func (b *shaper) countsOf(least, most string) (lo, hi int, err error) {
	if lo, err = b.countOf(least, 0); err == nil {
		hi, err = b.countOf(most, Unbounded)
	}
	return lo, hi, err
}

// A numberBound is a keyword that bounds numbers. With the boolean that draft 4
// has in its place, strict becomes true for the keyword beside it.
type numberBound struct {
	keyword string
	want    func(sign int) bool
	flag    string // the boolean
	strict  func(sign int) bool
}

var numberBounds = []numberBound{
	{"minimum", func(s int) bool { return s >= 0 }, "exclusiveMinimum", func(s int) bool { return s > 0 }},
	{"maximum", func(s int) bool { return s <= 0 }, "exclusiveMaximum", func(s int) bool { return s < 0 }},
	{"exclusiveMinimum", func(s int) bool { return s > 0 }, "", nil},
	{"exclusiveMaximum", func(s int) bool { return s < 0 }, "", nil},
}

func (b *shaper) numbers() error {
	for _, bound := range numberBounds {
		if err := b.apply(bound.keyword, func(v *value) error { return b.bound(bound, v) }); err != nil {
			return err
		}
	}
	if err := b.apply("multipleOf", b.multipleOf); err != nil {
		return err
	}
	if v := b.s.get("format"); v != nil && v.text == "int32" && b.acc.has(kindNumber) {
		return b.int32()
	}
	return nil
}

func (b *shaper) bound(bound numberBound, v *value) error {
	if v == nil || bound.flag == "" && (v.kind == kindTrue || v.kind == kindFalse) {
		return nil
	}
	d, _, err := b.decimalOf(bound.keyword)
	if err != nil {
		return err
	}
	want := bound.want
	if flag := b.s.get(bound.flag); bound.flag != "" && flag != nil && flag.kind == kindTrue {
		want = bound.strict
	}
	return b.narrowNumbers(b.c.comparison(d, want))
}

func (b *shaper) multipleOf(v *value) error {
	if v == nil {
		return nil
	}
	d, _, err := b.decimalOf("multipleOf")
	if err != nil {
		return err
	}
	if d.neg || d.isZero() {
		return b.s.invalid("multipleOf", "must be above 0")
	}
	return b.narrowNumbers(multiples(b.c.meter, d, b.c.limits.Product))
}

// int32 is OpenAPI's format.
func (b *shaper) int32() error {
	for i, limit := range []string{"-2147483648", "2147483647"} {
		d, err := parseDecimal(limit)
		if err != nil {
			return err
		}
		if err := b.narrowNumbers(b.c.comparison(d, numberBounds[i].want)); err != nil {
			return err
		}
	}
	b.acc.fewer.add(kindNumber) // a validator may not know the format
	return nil
}

func (b *shaper) narrowNumbers(set *DFA, err error) error {
	if err != nil || !b.acc.has(kindNumber) {
		return err
	}
	key := [2]*DFA{b.acc.numbers, set}
	both := b.c.narrowed[key]
	if both == nil {
		if both, err = combine(b.c.meter, b.acc.numbers, set, opAnd, b.c.limits.Product); err != nil {
			return err
		}
		b.c.narrowed[key] = both
	}
	out := *b.acc
	out.numbers = both
	b.acc = &out
	return nil
}

// comparison is the function of that name, done once for each bound.
func (c *compiler) comparison(d decimal, want func(sign int) bool) (*DFA, error) {
	key := fmt.Sprint(d, want(-1), want(0), want(1))
	if set := c.bounds[key]; set != nil {
		return set, nil
	}
	set, err := comparison(c.meter, d, want)
	c.bounds[key] = set
	return set, err
}

func (b *shaper) strings() error {
	if !b.acc.has(kindString) {
		return nil
	}
	lo, hi, err := b.countsOf("minLength", "maxLength")
	if err != nil {
		return err
	}
	out := *b.acc
	b.acc = &out
	if b.acc.strings, err = b.c.intersectTexts(b.acc.strings, []text{{dfa: allTexts, min: lo, max: hi}}); err != nil {
		return err
	}
	if err := b.apply("pattern", b.pattern); err != nil {
		return err
	}
	return b.apply("format", b.format)
}

func (b *shaper) narrowStrings(t text) error {
	out := *b.acc
	var err error
	out.strings, err = b.c.intersectTexts(b.acc.strings, []text{t})
	if err == nil {
		b.acc = &out
	}
	return err
}

func (b *shaper) pattern(v *value) error {
	if v == nil {
		return nil
	}
	if v.kind != kindString {
		return b.s.invalid("pattern", "must be a string")
	}
	t, err := b.c.boundedText(v.text)
	if err != nil {
		return err
	}
	return b.narrowStrings(t)
}

// boundedText is the texts with a match of a regular expression, which is
// compiled once.
func (c *compiler) boundedText(source string) (text, error) {
	if t, ok := c.bounded[source]; ok {
		return t, nil
	}
	p, least, most, err := compileBounded(c.meter, source, c.limits.DFA)
	if err != nil {
		return text{}, err
	}
	t := text{dfa: p.inner, min: least, max: most, wide: p.wide}
	c.bounded[source] = t
	return t, nil
}

// pattern compiles a regular expression for names, once.
func (c *compiler) pattern(source string) (*pattern, error) {
	if p := c.patterns[source]; p != nil {
		return p, nil
	}
	p, err := compilePattern(c.meter, source, c.limits.DFA)
	if err == nil {
		c.patterns[source] = p
	}
	return p, err
}

// format is enforced where the schema, or one that it is a branch of, has an
// explicit string type: elsewhere it is an annotation.
func (b *shaper) format(v *value) error {
	names, err := b.typeNames(b.s.get("type"))
	for s := b.s.within; s != nil && len(names) == 0 && err == nil; s = s.within {
		names, err = b.typeNames(s.get("type"))
	}
	if err != nil || v == nil || !slices.Contains(names, "string") {
		return err
	}
	f, known := formats[v.text]
	if !known {
		return nil
	}
	return b.narrowStrings(text{dfa: f.language(), max: Unbounded, wide: f.wide})
}
