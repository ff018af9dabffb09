package grammar

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A term is a set of JSON values: a schema, a literal, or a combination of
// terms. Its shape is worked out when it is asked for, so that terms can refer
// to each other in circles. Equal terms are the same pointer.
type term struct {
	op     termOp
	id     uint32
	parts  []*term
	schema *schema
	scope  *scope
	value  *value

	shape *shape
	busy  bool // its shape is being worked out
}

type termOp uint8

const (
	termSchema termOp = iota
	termValue
	termAll // every value
	termNone
	termAnd
	termOr
	termNot
)

// termKey is how terms are told apart.
func (c *compiler) intern(key string, t *term) *term {
	if known := c.terms[key]; known != nil {
		return known
	}
	t.id = uint32(len(c.terms))
	c.terms[key] = t
	return t
}

// schemaTerm is the values that a schema admits in a dynamic scope.
func (c *compiler) schemaTerm(s *schema, sc *scope) *term {
	switch {
	case s.value.kind == kindTrue, s.value.kind == kindObject && len(s.value.members) == 0:
		return c.all
	case s.value.kind == kindFalse:
		return c.none
	}
	sc = c.enter(sc, s.res)
	return c.intern("s"+s.path+"\x00"+sc.key, &term{op: termSchema, schema: s, scope: sc})
}

// child is the term of a schema inside t's schema.
func (c *compiler) child(t *term, v *value) *term {
	return c.target(c.schemaTerm(c.doc.schemas[v], t.scope))
}

// valueTerm is one literal.
func (c *compiler) valueTerm(v *value) *term {
	return c.intern("v"+v.compact(), &term{op: termValue, value: v})
}

// and is the values that all of the terms have.
func (c *compiler) and(terms ...*term) *term { return c.combine(termAnd, c.all, c.none, terms) }

// or is the values that any of the terms has.
func (c *compiler) or(terms ...*term) *term { return c.combine(termOr, c.none, c.all, terms) }

func (c *compiler) combine(op termOp, neutral, absorbing *term, terms []*term) *term {
	var parts []*term
	for _, t := range terms {
		switch {
		case t == absorbing:
			return absorbing
		case t == neutral:
		case t.op == op:
			parts = append(parts, t.parts...)
		default:
			parts = append(parts, t)
		}
	}
	slices.SortFunc(parts, func(a, b *term) int { return int(a.id) - int(b.id) })
	parts = slices.Compact(parts)
	switch {
	case len(parts) == 0:
		return neutral
	case len(parts) == 1:
		return parts[0]
	case contradicts(op, parts):
		return absorbing
	}
	var key strings.Builder
	key.WriteByte('0' + byte(op))
	for _, t := range parts {
		key.Write(binary.AppendUvarint(nil, uint64(t.id)))
	}
	return c.intern(key.String(), &term{op: op, parts: parts})
}

// contradicts tells whether the parts have a term and its opposite: a term
// alone, or all parts of a combination like theirs.
func contradicts(op termOp, parts []*term) bool {
	return slices.ContainsFunc(parts, func(p *term) bool {
		if p.op != termNot {
			return false
		}
		denied := p.parts
		if denied[0].op == op {
			denied = denied[0].parts
		}
		return !slices.ContainsFunc(denied, func(t *term) bool { return !slices.Contains(parts, t) })
	})
}

// not is the values that the term does not have.
func (c *compiler) not(t *term) *term {
	switch t.op {
	case termAll:
		return c.none
	case termNone:
		return c.all
	}
	return c.intern("n"+string(binary.AppendUvarint(nil, uint64(t.id))), &term{op: termNot, parts: []*term{t}})
}

// origin is the schema that a term comes from, for messages.
func (t *term) origin() *schema {
	for t.schema == nil && len(t.parts) > 0 {
		t = t.parts[0]
	}
	return t.schema
}
