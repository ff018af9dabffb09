package grammar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseGBNF reads a grammar in llama.cpp's dialect (llama_grammar_parser). It
// has the texts that llama.cpp's grammar has, but for counts above 2,000, which
// it keeps and llama.cpp refuses or takes as no limit. Endless repetitions of a
// rule that may be empty are taken too; llama.cpp calls them left recursion. The
// error is a *SyntaxError.
func ParseGBNF(text string) (*Grammar, error) {
	p := gbnfParser{text: text, ids: map[string]Ref{}, depth: maxGroups}
	if !utf8.ValidString(text) {
		return nil, p.fail("the text is not UTF-8")
	}
	if err := p.parse(); err != nil {
		return nil, p.fail(err.Error())
	}
	g, err := p.grammar()
	if err != nil {
		return nil, p.fail(err.Error())
	}
	return g, nil
}

// maxGroups is the most brackets inside each other.
const maxGroups = 200

type gbnfParser struct {
	text    string
	pos     int
	depth   int
	ids     map[string]Ref
	rules   []Rule
	defined []bool
	lines   []int // where each rule is first named
}

func (p *gbnfParser) fail(reason string) error {
	return &SyntaxError{Line: 1 + strings.Count(p.text[:p.pos], "\n"), Reason: reason}
}

// space skips white space and comments; line ends where they mean nothing.
func (p *gbnfParser) space(lines bool) {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == ' ', c == '\t', lines && (c == '\r' || c == '\n'):
			p.pos++
		case c == '#':
			for p.pos < len(p.text) && p.text[p.pos] != '\r' && p.text[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

func (p *gbnfParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *gbnfParser) take(prefix string) bool {
	if !strings.HasPrefix(p.text[p.pos:], prefix) {
		return false
	}
	p.pos += len(prefix)
	return true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

func (p *gbnfParser) name() (string, error) {
	start := p.pos
	for isNameByte(p.peek()) {
		p.pos++
	}
	if p.pos == start {
		return "", errors.New("expected the name of a rule")
	}
	return p.text[start:p.pos], nil
}

// ref is the rule of that name, defined or not yet.
func (p *gbnfParser) ref(name string) Ref {
	id, ok := p.ids[name]
	if !ok {
		id = Ref(len(p.rules))
		p.ids[name] = id
		p.rules = append(p.rules, Rule{Name: name})
		p.defined = append(p.defined, false)
		p.lines = append(p.lines, p.pos)
	}
	return id
}

func (p *gbnfParser) parse() error {
	p.ref("root") // the first rule of a Grammar
	for p.space(true); p.pos < len(p.text); p.space(true) {
		name, err := p.name()
		if err != nil {
			return err
		}
		id := p.ref(name)
		p.space(false)
		if !p.take("::=") {
			return errors.New("expected ::= behind the name of a rule")
		}
		p.space(true)
		body, err := p.alternatives(false)
		if err != nil {
			return err
		}
		p.rules[id].Body, p.defined[id] = body, true
		if c := p.peek(); p.pos < len(p.text) && c != '\r' && c != '\n' {
			return fmt.Errorf("unexpected %q", c)
		}
	}
	return nil
}

// alternatives reads up to the end of the rule or of the group.
func (p *gbnfParser) alternatives(nested bool) (Node, error) {
	var alt []Node
	for {
		seq, err := p.sequence(nested)
		if err != nil {
			return nil, err
		}
		alt = append(alt, seq)
		if !p.take("|") {
			return alternatives(alt...), nil
		}
		p.space(true)
	}
}

func (p *gbnfParser) sequence(nested bool) (Node, error) {
	var parts []Node
	for {
		group := p.peek() == '('
		item, ok, err := p.item()
		if err != nil || !ok {
			return sequence(parts...), err
		}
		p.space(nested)
		nothing := !group && isEmpty(item) // a group is a rule, also an empty one
		for {
			r, ok, err := p.repetition(nested)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			if nothing {
				return nil, errors.New("nothing to repeat")
			}
			item, nothing = repeated(item, r.Min, r.Max), r.Max == 0
		}
		parts = append(parts, item)
	}
}

func isEmpty(n Node) bool {
	s, ok := n.(Seq)
	return ok && len(s) == 0
}

// item reads what a repetition may follow; false at the end of the sequence.
func (p *gbnfParser) item() (Node, bool, error) {
	switch c := p.peek(); {
	case p.take(`"`):
		n, err := p.literal()
		return n, true, err
	case p.take("["):
		n, err := p.class()
		return n, true, err
	case p.take("."):
		return Class(anyRune), true, nil
	case p.take("("):
		n, err := p.group()
		return n, true, err
	case c == '<', c == '!':
		n, err := p.token()
		return n, true, err
	case c == '*', c == '+', c == '?', c == '{':
		return nil, false, errors.New("nothing to repeat")
	case isNameByte(c):
		name, err := p.name()
		return p.ref(name), true, err
	}
	return nil, false, nil
}

func (p *gbnfParser) group() (Node, error) {
	if p.depth--; p.depth < 0 {
		return nil, errors.New("brackets are nested too deep")
	}
	p.space(true)
	n, err := p.alternatives(true)
	p.depth++
	if err == nil && !p.take(")") {
		err = errors.New("expected )")
	}
	return n, err
}

func (p *gbnfParser) literal() (Node, error) {
	var b strings.Builder
	for !p.take(`"`) {
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return Seq{}, nil
	}
	return Literal(b.String()), nil
}

// class reads a bracketed class. As in llama.cpp an empty one, negated or not,
// is the empty text.
func (p *gbnfParser) class() (Node, error) {
	negated := p.take("^")
	var set runeSet
	for !p.take("]") {
		low, err := p.char()
		if err != nil {
			return nil, err
		}
		high := low
		if p.peek() == '-' && !strings.HasPrefix(p.text[p.pos:], "-]") {
			p.pos++
			if high, err = p.char(); err != nil {
				return nil, err
			}
			if high < low {
				return nil, fmt.Errorf("the range %c-%c is out of order", low, high)
			}
		}
		set = append(set, Range{low, high})
	}
	if set == nil {
		return Seq{}, nil
	}
	set = normalizeRunes(set)
	if negated {
		set = invertRunes(set)
	}
	return Class(set), nil
}

var gbnfEscapes = map[byte]rune{'t': '\t', 'r': '\r', 'n': '\n', '\\': '\\', '"': '"', '[': '[', ']': ']', '-': '-'}
var gbnfHexDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

func (p *gbnfParser) char() (rune, error) {
	if p.pos >= len(p.text) {
		return 0, errors.New("unexpected end")
	}
	if !p.take(`\`) {
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		p.pos += size
		return r, nil
	}
	c := p.peek()
	if r, ok := gbnfEscapes[c]; ok {
		p.pos++
		return r, nil
	}
	digits := gbnfHexDigits[c]
	if digits == 0 || len(p.text)-p.pos <= digits {
		return 0, errors.New(`unknown escape`)
	}
	n, err := strconv.ParseUint(p.text[p.pos+1:p.pos+1+digits], 16, 32)
	if err != nil || n > utf8.MaxRune || !isScalar(rune(n)) {
		return 0, errors.New("the escape is no character")
	}
	p.pos += 1 + digits
	return rune(n), nil
}

func (p *gbnfParser) token() (Node, error) {
	t := Token{Not: p.take("!")}
	end := strings.IndexByte(p.text[p.pos:], '>')
	if p.peek() != '<' || end < 0 {
		return nil, errors.New("expected a token: <text> or <[id]>")
	}
	t.Text = p.text[p.pos : p.pos+end+1]
	if strings.ContainsAny(t.Text, "\r\n") {
		return nil, errors.New("a token has no line breaks")
	}
	p.pos += end + 1
	if id, ok := strings.CutPrefix(t.Text, "<["); ok {
		id, ok = strings.CutSuffix(id, "]>")
		if _, err := strconv.ParseUint(id, 10, 31); !ok || err != nil {
			return nil, errors.New("expected the id of a token between <[ and ]>")
		}
	}
	return t, nil
}

// repetition reads * + ? {n} {n,} or {n,m}.
func (p *gbnfParser) repetition(nested bool) (r Repeat, ok bool, err error) {
	switch {
	case p.take("*"):
		r.Max = Unbounded
	case p.take("+"):
		r.Min, r.Max = 1, Unbounded
	case p.take("?"):
		r.Max = 1
	case p.take("{"):
		p.space(nested)
		if r, err = p.counts(nested); err != nil {
			return r, false, err
		}
	default:
		return r, false, nil
	}
	p.space(nested)
	return r, true, nil
}

func (p *gbnfParser) counts(nested bool) (r Repeat, err error) {
	if r.Min, err = p.number(); err != nil {
		return r, err
	}
	p.space(nested)
	r.Max = r.Min
	if p.take(",") {
		p.space(nested)
		if r.Max = Unbounded; p.peek() != '}' {
			if r.Max, err = p.number(); err != nil {
				return r, err
			}
			p.space(nested)
		}
	}
	if !p.take("}") {
		return r, errors.New("expected }")
	}
	if r.Max != Unbounded && r.Max < r.Min {
		return r, errors.New("the numbers of a repetition are out of order")
	}
	return r, nil
}

func (p *gbnfParser) number() (int, error) {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	n, err := strconv.ParseUint(p.text[start:p.pos], 10, 30)
	if err != nil {
		return 0, errors.New("expected a number of repetitions")
	}
	return int(n), nil
}

// grammar checks the rules as a whole.
func (p *gbnfParser) grammar() (*Grammar, error) {
	for i, defined := range p.defined {
		if !defined {
			p.pos = p.lines[i]
			return nil, fmt.Errorf("the rule %s is not defined", p.rules[i].Name)
		}
	}
	g := &Grammar{Rules: p.rules}
	if r := g.leftRecursive(); r >= 0 {
		p.pos = p.lines[r]
		return nil, fmt.Errorf("the rule %s begins with itself", p.rules[r].Name)
	}
	if p.pos = 0; !g.trim() {
		return nil, errors.New("no text satisfies the grammar")
	}
	return g, nil
}
