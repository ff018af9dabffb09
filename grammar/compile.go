package grammar

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// FromSchema compiles a JSON Schema of any draft from 4 to 2020-12 or of
// OpenAPI, by default 2020-12. Errors are *InvalidSchema or *Unenforceable.
func FromSchema(text []byte, o Options) (*Grammar, error) {
	c := newCompiler(o)
	doc, err := c.parse(text)
	if err != nil {
		return nil, err
	}
	c.doc = doc
	root := c.schemaTerm(doc.root, &scope{anchors: map[string]*schema{}})
	g, err := c.emit(root)
	if errors.Is(err, errEmpty) {
		return nil, c.unsatisfied(root)
	}
	return g, c.blame(err, doc.root, "")
}

// A compiler holds one compilation.
type compiler struct {
	strict       bool
	unique       bool
	comma, colon string
	notation     *notation // nil for JSON
	limits       Limits
	meter        *meter
	doc          *document
	terms        map[string]*term
	all, none    *term
	every        *shape // of all, once it is needed
	scopes       map[string]*scope
	patterns     map[string]*pattern // of names
	others       map[string]*DFA     // names to what is none of them
	bounded      map[string]text     // of strings, by their pattern
	bounds       map[string]*DFA     // of numbers
	narrowed     map[[2]*DFA]*DFA    // two sets of numbers to what is in both
	spelled      map[*DFA]*DFA       // string contents to JSON strings
	between      map[countedDFA]*DFA // string contents to what stands between marks
	written      map[numbered]*DFA   // numbers to their spellings
	repeats      map[*array]bool     // whose items may come again, for best effort
	relaxed      []Unenforceable
}

func newCompiler(o Options) *compiler {
	c := &compiler{
		strict:   o.Strict,
		unique:   o.Unique,
		comma:    cmp.Or(o.Comma, ","),
		colon:    cmp.Or(o.Colon, ":"),
		limits:   o.Limits.withDefaults(),
		terms:    map[string]*term{},
		scopes:   map[string]*scope{},
		patterns: map[string]*pattern{},
		others:   map[string]*DFA{},
		bounded:  map[string]text{},
		bounds:   map[string]*DFA{},
		narrowed: map[[2]*DFA]*DFA{},
		spelled:  map[*DFA]*DFA{},
		between:  map[countedDFA]*DFA{},
		written:  map[numbered]*DFA{},
		repeats:  map[*array]bool{},
	}
	c.meter = &meter{left: c.limits.Work}
	c.all = c.intern("all", &term{op: termAll})
	c.none = c.intern("none", &term{op: termNone})
	return c
}

// parse reads the schema's text, within the limits on its size.
func (c *compiler) parse(text []byte) (*document, error) {
	v, err := parseJSON(text, c.limits.Depth)
	if errors.Is(err, errJSONDepth) {
		return nil, &Unenforceable{Reason: fmt.Sprintf("is nested deeper than %d levels", c.limits.Depth)}
	}
	if err != nil {
		return nil, &InvalidSchema{Reason: "is no JSON text: " + err.Error()}
	}
	if n := len(v.compact()); n > c.limits.Bytes {
		return nil, &Unenforceable{Reason: fmt.Sprintf("has %d bytes, more than %d", n, c.limits.Bytes)}
	}
	return readDocument(&v)
}

// The reasons for which a shape cannot be worked out, beside those of automata.
var (
	errBranches   = errors.New("has too many branches")
	errComplement = errors.New("cannot be turned into its opposite")
	errCycle      = errors.New("refers to itself without anything between")
	errTerms      = errors.New("combines too many schemas")
	errRules      = errors.New("needs too many rules")
)

// blame makes an error that a caller can act on, unless it is one already.
func (c *compiler) blame(err error, s *schema, keyword string) error {
	var invalid *InvalidSchema
	var unenforceable *Unenforceable
	if err == nil || errors.As(err, &invalid) || errors.As(err, &unenforceable) {
		return err
	}
	if errors.Is(err, errCycle) {
		return s.invalid(keyword, err.Error())
	}
	return &Unenforceable{Path: s.path, Keyword: keyword, Reason: err.Error()}
}

// relax says what becomes of a keyword that cannot be enforced: nil and an entry
// in the list of what was relaxed, or the error. No mode survives running out of
// work.
func (c *compiler) relax(err error, s *schema, keyword string) error {
	err = c.blame(err, s, keyword)
	var u *Unenforceable
	if c.strict || !errors.As(err, &u) || c.meter.left < 0 {
		return err
	}
	if !slices.Contains(c.relaxed, *u) { // a schema may be met more than once
		c.relaxed = append(c.relaxed, *u)
	}
	return nil
}
