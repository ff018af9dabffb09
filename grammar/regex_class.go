package grammar

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

var (
	digitRunes = runeSet{{'0', '9'}}
	// spaceRunes is WhiteSpace and LineTerminator of ECMA-262.
	spaceRunes = normalizeRunes(append(runesOf('\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x2028, 0x2029, 0xFEFF),
		tableRunes(unicode.Zs)...))
	// dotRunes is what a dot matches: all but line terminators.
	dotRunes = invertRunes(runesOf('\n', '\r', 0x2028, 0x2029))

	classEscapes = map[byte]runeSet{
		'd': digitRunes, 'D': invertRunes(digitRunes),
		'w': wordRunes, 'W': invertRunes(wordRunes),
		's': spaceRunes, 'S': invertRunes(spaceRunes),
	}
)

// class reads a bracketed class, after its [.
func (p *regexParser) class() (regex, error) {
	negated := p.take("^")
	set := runeSet{}
	for !p.take("]") {
		if p.rest == "" {
			return nil, errors.New("has a [ without its ]")
		}
		part, err := p.classRange()
		if err != nil {
			return nil, err
		}
		set = append(set, part...)
	}
	set = normalizeRunes(set)
	if negated {
		set = invertRunes(set)
	}
	return reChars{set}, nil
}

// classRange reads a member of a class: a character, a range or a set.
func (p *regexParser) classRange() (runeSet, error) {
	low, err := p.classAtom()
	if err != nil || len(p.rest) < 2 || p.rest[0] != '-' || p.rest[1] == ']' {
		return low.set, err
	}
	p.take("-")
	high, err := p.classAtom()
	if err != nil {
		return nil, err
	}
	if !low.single || !high.single {
		// Old patterns such as [\w-.] mean all three.
		return append(append(low.set[:len(low.set):len(low.set)], Range{'-', '-'}), high.set...), nil
	}
	if low.char > high.char {
		return nil, fmt.Errorf("has the range %c-%c, which is out of order", low.char, high.char)
	}
	return runeSet{{low.char, high.char}}, nil
}

// A classAtom is what may stand at an end of a range.
type classAtom struct {
	set    runeSet
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
	return classAtom{set: runeSet{{r, r}}, char: r, single: true}
}

// property reads \p{…} or \P{…}, after the backslash.
func (p *regexParser) property() (runeSet, error) {
	negated := p.rest[0] == 'P'
	name, rest, ok := strings.Cut(p.rest[2:], "}")
	if !ok {
		return nil, errors.New(`has \p{ without its }`)
	}
	p.rest = rest
	set, ok := propertyRunes(name)
	if !ok {
		return nil, fmt.Errorf(`has \p{%s}, which is no known property`, name)
	}
	if negated {
		set = invertRunes(set)
	}
	return set, nil
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
