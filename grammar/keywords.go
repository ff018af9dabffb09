package grammar

import (
	"slices"
	"strconv"
)

// schemaShape is the values that a schema admits.
func (c *compiler) schemaShape(t *term) (*shape, error) {
	b := &shaper{c: c, t: t, s: t.schema, acc: c.full()}
	err := b.narrowBySchema()
	return b.acc, err
}

// narrowBySchema does all steps.
func (b *shaper) narrowBySchema() error {
	if b.s.res.draft <= draft7 && b.s.get("$ref") != nil { // old drafts ignore what stands beside it
		return b.apply("$ref", func(*value) error { return b.ref() })
	}
	for _, step := range steps {
		keyword := step.keyword
		if keyword != "" && b.s.get(keyword) == nil {
			continue
		}
		if err := b.apply(keyword, func(v *value) error { return step.do(b, v) }); err != nil {
			return err
		}
	}
	return nil
}

// A shaper narrows acc to the values of a schema, keyword by keyword.
type shaper struct {
	c   *compiler
	t   *term
	s   *schema
	acc *shape
}

// A step narrows a shape by one keyword, if the schema has it, or without a
// keyword by several, and by what holds without them.
type step struct {
	keyword string
	do      func(*shaper, *value) error
}

// steps are all steps, in order. Keywords that are not here are annotations, or
// read by those that are.
var steps []step

func init() { // steps lead to schemas, and so to steps
	alone := func(do func(*shaper) error) func(*shaper, *value) error {
		return func(b *shaper, _ *value) error { return do(b) }
	}
	steps = []step{
		{"type", (*shaper).types},
		{"", alone((*shaper).numbers)},
		{"", alone((*shaper).strings)},
		{"", alone((*shaper).array)},
		{"", alone((*shaper).object)},
		{"enum", (*shaper).enum},
		{"const", (*shaper).constant},
		{"$ref", alone((*shaper).ref)},
		{"$dynamicRef", alone((*shaper).dynamicRef)},
		{"$recursiveRef", alone((*shaper).recursiveRef)},
		{"allOf", (*shaper).allOf},
		{"dependentSchemas", (*shaper).dependentSchemas},
		{"dependencies", (*shaper).dependencies},
		{"not", (*shaper).not},
		{"if", (*shaper).condition},
		{"oneOf", (*shaper).oneOf},
		{"anyOf", (*shaper).anyOf},
		{"unevaluatedItems", (*shaper).unevaluatedItems},
		{"unevaluatedProperties", (*shaper).unevaluatedProperties},
	}
}

// apply does one step. A keyword that cannot be enforced leaves acc as it was
// where best effort is enough.
func (b *shaper) apply(keyword string, do func(*value) error) error {
	before := b.acc
	var v *value
	if keyword != "" {
		v = b.s.get(keyword)
	}
	err := do(v)
	if err == nil {
		return nil
	}
	if err := b.c.relax(err, b.s, keyword); err != nil {
		return err
	}
	b.acc = b.loosened(before)
	return nil
}

// loosened is the shape, marked as having too much.
func (b *shaper) loosened(s *shape) *shape {
	out := *s
	for k := range kind(kinds) {
		out.more.addIf(s.has(k), k)
	}
	return &out
}

// narrow intersects acc with a shape.
func (b *shaper) narrow(s *shape, err error) error {
	if err == nil {
		s, err = b.c.intersect(b.acc, s)
	}
	if err == nil {
		b.acc = s
	}
	return err
}

// narrowTo intersects acc with a term.
func (b *shaper) narrowTo(t *term) error { return b.narrow(b.c.shapeWithin(t, b.acc)) }

// narrowWithin is narrowTo, but lets a schema whose branches must be told apart
// see what is known already: a key may be required outside of it.
func (b *shaper) narrowWithin(t *term) error {
	if t.op != termSchema || t.shape != nil || b.c.doc.annotated ||
		t.schema.get("oneOf") == nil && t.schema.get("not") == nil && t.schema.get("if") == nil {
		return b.narrowTo(t)
	}
	if t.busy {
		return errCycle
	}
	t.busy = true
	defer func() { t.busy = false }()
	within := &shaper{c: b.c, t: t, s: t.schema, acc: b.acc}
	err := within.narrowBySchema()
	b.acc = within.acc
	return err
}

var typeKinds = map[string]kindSet{
	"null": kindNull.set(), "boolean": kindFalse.set() | kindTrue.set(), "number": kindNumber.set(),
	"integer": kindNumber.set(), "string": kindString.set(), "array": kindArray.set(), "object": kindObject.set(),
}

func (b *shaper) types(v *value) error {
	names, err := b.typeNames(v)
	if err != nil {
		return err
	}
	var set kindSet
	for _, name := range names {
		set |= typeKinds[name]
	}
	if n := b.s.get("nullable"); n != nil && n.kind == kindTrue && !b.c.doc.dialect {
		set.add(kindNull) // OpenAPI 3.0
	}
	out := *b.acc
	out.keep(set)
	b.acc = &out
	if slices.Contains(names, "integer") && !slices.Contains(names, "number") {
		return b.narrowNumbers(integers(), nil)
	}
	return nil
}

// typeNames is the type keyword as a list.
func (b *shaper) typeNames(v *value) ([]string, error) {
	var names []string
	switch {
	case v == nil:
		return nil, nil
	case v.kind == kindString:
		names = []string{v.text}
	case v.kind == kindArray:
		for _, item := range v.items {
			names = append(names, item.text)
		}
	}
	for _, name := range names {
		if _, ok := typeKinds[name]; !ok {
			return nil, b.s.invalid("type", "is no type: "+strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		return nil, b.s.invalid("type", "must be the name of a type or a list of such")
	}
	return names, nil
}

func (b *shaper) enum(v *value) error {
	if v.kind != kindArray {
		return b.s.invalid("enum", "must be an array")
	}
	values := make([]*value, len(v.items))
	for i := range v.items {
		values[i] = &v.items[i]
	}
	return b.narrow(b.c.valueShape(values))
}

func (b *shaper) constant(v *value) error { return b.narrow(b.c.valueShape([]*value{v})) }

func (b *shaper) ref() error {
	target, _, err := b.c.doc.resolve(b.s, "$ref")
	if err != nil {
		return err
	}
	return b.narrowTo(b.c.schemaTerm(target, b.t.scope))
}

func (b *shaper) dynamicRef() error {
	target, anchor, err := b.c.doc.resolve(b.s, "$dynamicRef")
	if err != nil {
		return err
	}
	if anchor != "" && target.res.dynamic[anchor] == target {
		target = b.outermost(anchor, target)
	}
	return b.narrowTo(b.c.schemaTerm(target, b.t.scope))
}

func (b *shaper) recursiveRef() error {
	target, _, err := b.c.doc.resolve(b.s, "$recursiveRef")
	if err != nil {
		return err
	}
	if target.res.dynamic[recursiveAnchor] == target {
		target = b.outermost(recursiveAnchor, target)
	}
	return b.narrowTo(b.c.schemaTerm(target, b.t.scope))
}

// asserting are the keywords that can narrow a schema, but for $ref.
var asserting = map[string]bool{
	"type": true, "enum": true, "const": true, "minimum": true, "maximum": true, "exclusiveMinimum": true,
	"exclusiveMaximum": true, "multipleOf": true, "format": true, "minLength": true, "maxLength": true,
	"pattern": true, "items": true, "prefixItems": true, "minItems": true, "maxItems": true, "contains": true,
	"uniqueItems": true, "properties": true, "patternProperties": true, "additionalProperties": true,
	"propertyNames": true, "required": true, "minProperties": true, "maxProperties": true,
	"dependentRequired": true, "dependencies": true, "dependentSchemas": true, "$dynamicRef": true,
	"$recursiveRef": true, "allOf": true, "anyOf": true, "oneOf": true, "not": true, "if": true,
	"unevaluatedItems": true, "unevaluatedProperties": true,
}

// target follows schemas that are nothing but a reference.
func (c *compiler) target(t *term) *term {
	for range maxReferences {
		if t.op != termSchema || t.schema.get("$ref") == nil ||
			slices.ContainsFunc(t.schema.value.members, func(m member) bool { return asserting[m.key] }) {
			break
		}
		s, _, err := c.doc.resolve(t.schema, "$ref")
		if err != nil {
			break // shapeOf reports it
		}
		t = c.schemaTerm(s, t.scope)
	}
	return t
}

// maxReferences is the most references that target follows in a row.
const maxReferences = 32

// outermost is the schema that the dynamic scope has for an anchor.
func (b *shaper) outermost(anchor string, initial *schema) *schema {
	if s := b.t.scope.anchors[anchor]; s != nil {
		return s
	}
	return initial
}

// subterms are the terms of a keyword that lists schemas.
func (b *shaper) subterms(keyword string, v *value) ([]*term, error) {
	if len(v.items) == 0 {
		return nil, b.s.invalid(keyword, "must have at least one schema")
	}
	terms := make([]*term, len(v.items))
	for i := range v.items {
		terms[i] = b.c.child(b.t, &v.items[i])
	}
	return terms, nil
}
