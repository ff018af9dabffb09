package grammar

import (
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// A regex is a parsed regular expression of ECMA-262, one of the types below.
type regex interface{ regex() }

type (
	reChars  struct{ set charSet }   // one character
	reSeq    struct{ parts []regex } // one after the other
	reAlt    struct{ parts []regex } // any one
	reRepeat struct {
		body     regex
		min, max int // max Unbounded for no limit
	}
	reAssert struct{ assertion assertion }
	reLook   struct { // (?=…) (?!…) (?<=…) (?<!…)
		body         regex
		behind, deny bool
	}
)

func (reChars) regex()  {}
func (reSeq) regex()    {}
func (reAlt) regex()    {}
func (reRepeat) regex() {}
func (reAssert) regex() {}
func (reLook) regex()   {}

var (
	errBackReference = errors.New("refers back to a group, which no automaton can")
	errModifier      = errors.New("has a modifier group, which is not supported")
)

// maxRegexDepth is the most groups inside each other.
const maxRegexDepth = 100

// parseRegex reads a pattern as JSON Schema has it: ECMA-262 with Unicode
// semantics where the pattern keeps to its rules, and the leniency that engines
// show to old patterns (annex B) where it does not.
func parseRegex(pattern string) (regex, error) {
	p := regexParser{rest: pattern, depth: maxRegexDepth}
	re, err := p.alternatives()
	if err == nil && p.rest != "" {
		err = errors.New("has a ) without its (")
	}
	return re, err
}

type regexParser struct {
	rest  string
	depth int // levels of groups left
}

// take consumes a prefix if it is there.
func (p *regexParser) take(prefix string) bool {
	if len(p.rest) < len(prefix) || p.rest[:len(prefix)] != prefix {
		return false
	}
	p.rest = p.rest[len(prefix):]
	return true
}

// char consumes the next character.
func (p *regexParser) char() rune {
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r
}

func (p *regexParser) alternatives() (regex, error) {
	var alt reAlt
	for {
		seq, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alt.parts = append(alt.parts, seq)
		if !p.take("|") {
			break
		}
	}
	if len(alt.parts) == 1 {
		return alt.parts[0], nil
	}
	return alt, nil
}

func (p *regexParser) sequence() (regex, error) {
	var seq reSeq
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		atom, err := p.atom()
		if err != nil {
			return nil, err
		}
		if atom, err = p.quantified(atom); err != nil {
			return nil, err
		}
		seq.parts = append(seq.parts, atom)
	}
	return seq, nil
}

func (p *regexParser) atom() (regex, error) {
	switch {
	case p.take("^"):
		return reAssert{assertStart}, nil
	case p.take("$"):
		return reAssert{assertEnd}, nil
	case p.take("."):
		return reChars{dotChars}, nil
	case p.take("("):
		return p.group()
	case p.take("["):
		return p.class()
	case p.take(`\`):
		return p.escape()
	case p.rest[0] == '*', p.rest[0] == '+', p.rest[0] == '?':
		return nil, fmt.Errorf("has %q with nothing to repeat", p.rest[0])
	}
	return reChars{exactly(runesOf(p.char()))}, nil
}

func (p *regexParser) group() (regex, error) {
	if p.depth--; p.depth < 0 {
		return nil, errors.New("has groups nested too deep")
	}
	defer func() { p.depth++ }()
	look, isLook := reLook{}, false
	switch {
	case p.take("?:"):
	case p.take("?="):
		isLook = true
	case p.take("?!"):
		look, isLook = reLook{deny: true}, true
	case p.take("?<="):
		look, isLook = reLook{behind: true}, true
	case p.take("?<!"):
		look, isLook = reLook{behind: true, deny: true}, true
	case p.take("?<"):
		if err := p.groupName(); err != nil {
			return nil, err
		}
	case p.take("?"):
		return nil, errModifier
	}
	body, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, errors.New("has a ( without its )")
	}
	if isLook {
		look.body = body
		return look, nil
	}
	return body, nil
}

func (p *regexParser) groupName() error {
	for p.rest != "" {
		if p.char() == '>' {
			return nil
		}
	}
	return errors.New("has a group name without its >")
}

// quantified reads what may stand behind an atom: * + ? {n} {n,} {n,m}, each
// with a ? that changes nothing about which texts match.
func (p *regexParser) quantified(atom regex) (regex, error) {
	r := reRepeat{body: atom}
	switch {
	case p.take("*"):
		r.max = Unbounded
	case p.take("+"):
		r.min, r.max = 1, Unbounded
	case p.take("?"):
		r.max = 1
	default:
		counted, err := p.counts(&r)
		if !counted || err != nil {
			return atom, err
		}
	}
	p.take("?")
	if _, ok := atom.(reAssert); ok {
		return nil, errors.New("repeats an assertion")
	}
	if _, ok := atom.(reLook); ok {
		return nil, errLookaround
	}
	return r, nil
}

// counts reads {n}, {n,} or {n,m}. Anything else that begins with a brace is
// ordinary text.
func (p *regexParser) counts(r *reRepeat) (bool, error) {
	start := p.rest
	if !p.take("{") {
		return false, nil
	}
	minText := p.digits()
	maxText, comma := minText, p.take(",")
	if comma {
		maxText = p.digits()
	}
	if minText == "" || !p.take("}") {
		p.rest = start
		return false, nil
	}
	var err error
	if r.min, err = strconv.Atoi(minText); err != nil {
		return false, errStates
	}
	r.max = Unbounded
	if maxText != "" {
		if r.max, err = strconv.Atoi(maxText); err != nil {
			return false, errStates
		}
		if r.max < r.min {
			return false, errors.New("has the numbers of a repetition out of order")
		}
	}
	return true, nil
}

func (p *regexParser) digits() string {
	i := 0
	for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
		i++
	}
	digits := p.rest[:i]
	p.rest = p.rest[i:]
	return digits
}

// escape reads what follows a backslash outside of a class.
func (p *regexParser) escape() (regex, error) {
	switch {
	case p.take("b"):
		return reAssert{assertWord}, nil
	case p.take("B"):
		return reAssert{assertNoWord}, nil
	case p.rest != "" && p.rest[0] >= '1' && p.rest[0] <= '9', p.take("k<"):
		return nil, errBackReference
	}
	set, err := p.escapedSet()
	return reChars{set}, err
}

// escapedSet reads what follows a backslash and stands for characters.
func (p *regexParser) escapedSet() (charSet, error) {
	if p.rest == "" {
		return charSet{}, errors.New(`ends in a \`)
	}
	if set, ok := classEscapes[p.rest[0]]; ok {
		p.rest = p.rest[1:]
		return set, nil
	}
	if (p.rest[0] == 'p' || p.rest[0] == 'P') && len(p.rest) > 1 && p.rest[1] == '{' {
		return p.property()
	}
	r, err := p.escapedChar()
	if err != nil {
		return charSet{}, err
	}
	return exactly(runesOf(r)), nil
}

var controlEscapes = map[byte]rune{'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '0': 0}

// escapedChar reads what follows a backslash and stands for one character.
func (p *regexParser) escapedChar() (rune, error) {
	if r, ok := controlEscapes[p.rest[0]]; ok {
		p.rest = p.rest[1:]
		return r, nil
	}
	switch {
	case p.take("c"):
		if p.rest == "" || !unicode.IsLetter(rune(p.rest[0])) {
			return 0, errors.New(`has a \c without a letter`)
		}
		return p.char() % 32, nil
	case p.take("x"):
		return p.hex(2)
	case p.take("u{"):
		return p.hexBraces()
	case p.take("u"):
		return p.hexPair()
	}
	r := p.char()
	if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
		return 0, fmt.Errorf(`has \%c, which is no escape`, r)
	}
	return r, nil
}

func (p *regexParser) hex(digits int) (rune, error) {
	if len(p.rest) >= digits {
		if n, err := strconv.ParseUint(p.rest[:digits], 16, 32); err == nil {
			p.rest = p.rest[digits:]
			return rune(n), nil
		}
	}
	return 0, fmt.Errorf("has an escape without its %d hexadecimal digits", digits)
}

// hexPair reads the digits of \uXXXX, and of a second one that makes a
// surrogate pair with it.
func (p *regexParser) hexPair() (rune, error) {
	r, err := p.hex(4)
	if err != nil || r < surrogateMin || r >= 0xDC00 {
		return r, err
	}
	rest := p.rest
	if p.take(`\u`) {
		low, err := p.hex(4)
		if err == nil && low >= 0xDC00 && low <= surrogateMax {
			return (r-surrogateMin)<<10 + low - 0xDC00 + 0x10000, nil
		}
	}
	p.rest = rest
	return r, nil
}

func (p *regexParser) hexBraces() (rune, error) {
	for i := 1; i < len(p.rest) && i <= 8; i++ {
		if p.rest[i] != '}' {
			continue
		}
		n, err := strconv.ParseUint(p.rest[:i], 16, 32)
		if err != nil || n > unicode.MaxRune {
			break
		}
		p.rest = p.rest[i+1:]
		return rune(n), nil
	}
	return 0, errors.New(`has \u{ without hexadecimal digits and a }`)
}
