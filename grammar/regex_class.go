package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A charSet is a set of characters. Dialects of regular expressions differ in
// what their classes mean: inner has the characters that all of them mean, outer
// those that any of them does, of which ECMA-262 means some. What a grammar
// admits is then valid for every validator, whatever its engine.
type charSet struct{ inner, outer runeSet }

func exactly(set runeSet) charSet { return charSet{set, set} }

func (s charSet) invert() charSet { return charSet{invertRunes(s.outer), invertRunes(s.inner)} }

var (
	digitRunes = runeSet{{'0', '9'}}
	// spaceRunes is the white space of all dialects, allSpaceRunes that of any.
	spaceRunes    = runesOf('\t', '\n', '\f', '\r', ' ')
	allSpaceRunes = normalizeRunes(append(runeSet{{'\t', '\r'}, {0x1C, 0x20}, {0x85, 0x85}, {0x2028, 0x2029}, {0xFEFF, 0xFEFF}},
		tableRunes(unicode.Zs)...))
	// dotChars is all but line ends, which are more in ECMA-262 than elsewhere.
	dotChars = charSet{invertRunes(runesOf('\n', '\r', 0x85, 0x2028, 0x2029)), invertRunes(runesOf('\n'))}

	digitChars = charSet{digitRunes, tableRunes(unicode.Nd)}
	// Some dialects have all letters of Unicode among the word characters. Any
	// character beyond ASCII that is no space may be one: a short list.
	wordChars  = charSet{wordRunes, normalizeRunes(slices.Concat(wordRunes, intersectRunes(runeSet{{0x80, unicode.MaxRune}}, invertRunes(allSpaceRunes))))}
	spaceChars = charSet{spaceRunes, allSpaceRunes}

	classEscapes = map[byte]charSet{
		'd': digitChars, 'D': digitChars.invert(),
		'w': wordChars, 'W': wordChars.invert(),
		's': spaceChars, 'S': spaceChars.invert(),
	}
)

// class reads a bracketed class, after its [.
func (p *regexParser) class() (regex, error) {
	negated := p.take("^")
	set := charSet{runeSet{}, runeSet{}}
	for !p.take("]") {
		if p.rest == "" {
			return nil, errors.New("has a [ without its ]")
		}
		part, err := p.classRange()
		if err != nil {
			return nil, err
		}
		set.inner = append(set.inner, part.inner...)
		set.outer = append(set.outer, part.outer...)
	}
	set = charSet{normalizeRunes(set.inner), normalizeRunes(set.outer)}
	if negated {
		set = set.invert()
	}
	return reChars{set}, nil
}

// classRange reads a member of a class: a character, a range or a set.
func (p *regexParser) classRange() (charSet, error) {
	low, err := p.classAtom()
	if err != nil || len(p.rest) < 2 || p.rest[0] != '-' || p.rest[1] == ']' {
		return low.set, err
	}
	p.take("-")
	high, err := p.classAtom()
	if err != nil {
		return charSet{}, err
	}
	if !low.single || !high.single {
		// Old patterns such as [\w-.] mean all three.
		hyphen := runeSet{{'-', '-'}}
		return charSet{slices.Concat(low.set.inner, hyphen, high.set.inner), slices.Concat(low.set.outer, hyphen, high.set.outer)}, nil
	}
	if low.char > high.char {
		return charSet{}, fmt.Errorf("has the range %c-%c, which is out of order", low.char, high.char)
	}
	return exactly(runeSet{{low.char, high.char}}), nil
}

// A classAtom is what may stand at an end of a range.
type classAtom struct {
	set    charSet
	char   rune // where single
	single bool
}

func (p *regexParser) classAtom() (classAtom, error) {
	if p.rest == "" {
		return classAtom{}, errors.New("has a [ without its ]")
	}
	if !p.take(`\`) {
		return singleAtom(p.char()), nil
	}
	switch {
	case p.rest == "":
		return classAtom{}, errors.New(`ends in a \`)
	case p.take("b"):
		return singleAtom('\b'), nil
	}
	_, isSet := classEscapes[p.rest[0]]
	if isSet || strings.HasPrefix(p.rest, "p{") || strings.HasPrefix(p.rest, "P{") {
		set, err := p.escapedSet()
		return classAtom{set: set}, err
	}
	r, err := p.escapedChar()
	return singleAtom(r), err
}

func singleAtom(r rune) classAtom {
	return classAtom{set: exactly(runeSet{{r, r}}), char: r, single: true}
}

// property reads \p{…} or \P{…}, after the backslash.
func (p *regexParser) property() (charSet, error) {
	negated := p.rest[0] == 'P'
	name, rest, ok := strings.Cut(p.rest[2:], "}")
	if !ok {
		return charSet{}, errors.New(`has \p{ without its }`)
	}
	p.rest = rest
	set, ok := propertyRunes(name)
	if !ok {
		return charSet{}, fmt.Errorf(`has \p{%s}, which is no known property`, name)
	}
	if negated {
		set = invertRunes(set)
	}
	return exactly(set), nil
}

// propertyRunes is the set of a Unicode property expression: a general
// category, Script=…, or a binary property.
func propertyRunes(expr string) (runeSet, bool) {
	name, value, pair := strings.Cut(expr, "=")
	if !pair {
		switch name {
		case "Any":
			return anyRune, true
		case "ASCII":
			return runeSet{{0, unicode.MaxASCII}}, true
		}
		if t, ok := category(name); ok {
			return tableRunes(t), true
		}
		return tableOf(unicode.Properties, name)
	}
	switch name {
	case "General_Category", "gc":
		if t, ok := category(value); ok {
			return tableRunes(t), true
		}
	case "Script", "sc":
		return tableOf(unicode.Scripts, value)
	}
	return nil, false
}

func category(name string) (*unicode.RangeTable, bool) {
	if short, ok := unicode.CategoryAliases[name]; ok {
		name = short
	}
	t, ok := unicode.Categories[name]
	return t, ok
}

func tableOf(tables map[string]*unicode.RangeTable, name string) (runeSet, bool) {
	t, ok := tables[name]
	if !ok {
		return nil, false
	}
	return tableRunes(t), true
}

func tableRunes(t *unicode.RangeTable) runeSet {
	var set runeSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			set = append(set, Range{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			set = append(set, Range{r, r})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return normalizeRunes(set)
}
