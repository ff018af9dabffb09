package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A value is a JSON value that keeps what a schema's meaning depends on: the
// order of keys and the exact text of numbers.
type value struct {
	kind    kind
	text    string // of a string, unescaped; of a number, as written
	items   []value
	members []member
}

type member struct {
	key   string
	value value
}

// A kind is a JSON type. True and false are kinds of their own, since a set of
// values may hold one of them alone.
type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
	kinds int = iota
)

// get is the member of that name, or nil.
func (v *value) get(key string) *value {
	for i := range v.members {
		if v.members[i].key == key {
			return &v.members[i].value
		}
	}
	return nil
}

var (
	errJSONDepth     = errors.New("is nested too deep")
	errJSONSurrogate = errors.New("has half a surrogate pair, which is no character")
)

// parseJSON reads one JSON text (RFC 8259) of at most maxDepth nested arrays
// and objects. A key that comes twice is an error.
func parseJSON(text []byte, maxDepth int) (value, error) {
	p := jsonParser{text: text, depth: maxDepth}
	p.space()
	v, err := p.value()
	if err != nil {
		return value{}, fmt.Errorf("byte %d: %w", p.pos, err)
	}
	if p.space(); p.pos < len(text) {
		return value{}, fmt.Errorf("byte %d: unexpected %q", p.pos, text[p.pos])
	}
	return v, nil
}

type jsonParser struct {
	text  []byte
	pos   int
	depth int // levels left
}

func (p *jsonParser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek is the next byte, or 0 at the end.
func (p *jsonParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *jsonParser) unexpected() error {
	if p.pos >= len(p.text) {
		return errors.New("unexpected end")
	}
	return fmt.Errorf("unexpected %q", p.text[p.pos])
}

func (p *jsonParser) value() (value, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.nested((*jsonParser).object)
	case c == '[':
		return p.nested((*jsonParser).array)
	case c == '"':
		s, err := p.string()
		return value{kind: kindString, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for k, name := range kindNames[:kindNumber] {
		if bytes.HasPrefix(p.text[p.pos:], []byte(name)) {
			p.pos += len(name)
			return value{kind: kind(k)}, nil
		}
	}
	return value{}, p.unexpected()
}

func (p *jsonParser) nested(read func(*jsonParser) (value, error)) (value, error) {
	if p.depth == 0 {
		return value{}, errJSONDepth
	}
	p.depth--
	p.pos++
	v, err := read(p)
	p.depth++
	return v, err
}

func (p *jsonParser) array() (value, error) {
	v := value{kind: kindArray}
	more, err := p.open(']')
	for more && err == nil {
		var item value
		if item, err = p.value(); err == nil {
			v.items = append(v.items, item)
			more, err = p.comma(']')
		}
	}
	return v, err
}

// fewMembers is up to how many members are compared one by one.
const fewMembers = 8

func (p *jsonParser) object() (value, error) {
	v := value{kind: kindObject}
	var seen map[string]bool
	more, err := p.open('}')
	if more && err == nil {
		v.members = make([]member, 0, 4)
	}
	for more && err == nil {
		var m member
		if m, err = p.member(); err != nil {
			break
		}
		if len(v.members) == fewMembers {
			seen = make(map[string]bool, 2*fewMembers)
			for i := range v.members {
				seen[v.members[i].key] = true
			}
		}
		if seen[m.key] || seen == nil && v.get(m.key) != nil {
			return v, fmt.Errorf("key %q comes twice", m.key)
		}
		if seen != nil {
			seen[m.key] = true
		}
		v.members = append(v.members, m)
		more, err = p.comma('}')
	}
	return v, err
}

func (p *jsonParser) member() (m member, err error) {
	if p.peek() != '"' {
		return m, p.unexpected()
	}
	if m.key, err = p.string(); err != nil {
		return m, err
	}
	p.space()
	if p.peek() != ':' {
		return m, p.unexpected()
	}
	p.pos++
	p.space()
	m.value, err = p.value()
	return m, err
}

// open tells whether something stands before the closing bracket.
func (p *jsonParser) open(closing byte) (bool, error) {
	p.space()
	if p.peek() == closing {
		p.pos++
		return false, nil
	}
	return true, nil
}

// comma tells whether another member follows.
func (p *jsonParser) comma(closing byte) (bool, error) {
	p.space()
	switch p.peek() {
	case closing:
		p.pos++
		return false, nil
	case ',':
		p.pos++
		p.space()
		return true, nil
	}
	return false, p.unexpected()
}

func (p *jsonParser) number() (value, error) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if p.digits() == 0 {
		return value{}, p.unexpected()
	}
	if p.peek() == '.' {
		p.pos++
		if p.digits() == 0 {
			return value{}, p.unexpected()
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if p.digits() == 0 {
			return value{}, p.unexpected()
		}
	}
	return value{kind: kindNumber, text: string(p.text[start:p.pos])}, nil
}

func (p *jsonParser) digits() int {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos - start
}

// isPlainByte is the ASCII characters that stand for themselves in a string.
var isPlainByte = func() (plain [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

func (p *jsonParser) string() (string, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.text) && isPlainByte[p.text[p.pos]] {
		p.pos++
	}
	if p.peek() == '"' {
		p.pos++
		return string(p.text[start : p.pos-1]), nil
	}
	out := slices.Clone(p.text[start:p.pos])
	for {
		c := p.peek()
		switch {
		case c == '"':
			p.pos++
			return string(out), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < ' ':
			return "", p.unexpected()
		default:
			r, size := utf8.DecodeRune(p.text[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", errors.New("text is not UTF-8")
			}
			out = append(out, p.text[p.pos:p.pos+size]...)
			p.pos += size
		}
	}
}

var jsonEscapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (p *jsonParser) escape() (rune, error) {
	p.pos++
	c := p.peek()
	if r, ok := jsonEscapes[c]; ok {
		p.pos++
		return r, nil
	}
	if c != 'u' {
		return 0, p.unexpected()
	}
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if len(p.text)-p.pos < 2 || p.text[p.pos] != '\\' || p.text[p.pos+1] != 'u' {
		return 0, errJSONSurrogate
	}
	p.pos++
	low, err := p.hex4()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, errJSONSurrogate
	}
	return r, nil
}

// hex4 reads the u and four digits of an escape.
func (p *jsonParser) hex4() (rune, error) {
	p.pos++
	if len(p.text)-p.pos < 4 {
		return 0, errors.New("unexpected end")
	}
	n, err := strconv.ParseUint(string(p.text[p.pos:p.pos+4]), 16, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no escape", `\u`+string(p.text[p.pos:p.pos+4]))
	}
	p.pos += 4
	return rune(n), nil
}
