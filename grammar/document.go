package grammar

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A document is a parsed schema text: its schemas, and what references can
// refer to. Nothing is ever fetched.
type document struct {
	root      *schema
	schemas   map[*value]*schema
	resources map[string]*resource // by absolute URI without fragment
	// annotated tells that some unevaluatedProperties or unevaluatedItems asks
	// which branches of an anyOf hold.
	annotated bool
	dialect   bool // the root names its draft
}

// A resource is a schema with an identity of its own ($id), or the root.
type resource struct {
	base    *url.URL
	draft   int // 4, 6, 7, 2019 or 2020
	root    *schema
	anchors map[string]*schema
	dynamic map[string]*schema // of the anchors, those that $dynamicRef looks for
}

// A schema is one schema of a document.
type schema struct {
	path  string // JSON pointer from the document's root
	value *value // an object or a boolean
	res   *resource
	// outer is the surrounding resource where a reference might be relative to
	// it: old drafts ignore an $id beside $ref, and the schema names no draft.
	outer *resource
	// within is the schema that a value must satisfy too: the one in whose allOf,
	// anyOf, oneOf, then or else this stands, or nil.
	within *schema
}

// recursiveAnchor is the name under which $recursiveAnchor (draft 2019-09)
// stands among the dynamic anchors. No anchor can be called so.
const recursiveAnchor = "#"

// Drafts of JSON Schema that differ in what this package reads.
const (
	draft4    = 4
	draft6    = 6
	draft7    = 7
	draft2019 = 2019
	draft2020 = 2020
)

// readDocument finds the schemas of a parsed text.
func readDocument(v *value) (*document, error) {
	d := &document{schemas: map[*value]*schema{}, resources: map[string]*resource{}, dialect: v.get("$schema") != nil}
	res := &resource{base: &url.URL{}, draft: draft2020}
	root, err := d.read(v, "", res, true)
	d.root = root
	return d, err
}

// invalid is an error about a keyword of the schema.
func (s *schema) invalid(keyword, reason string) error {
	return &InvalidSchema{Path: s.path, Keyword: keyword, Reason: reason}
}

// get is the value of a keyword, or nil.
func (s *schema) get(keyword string) *value {
	if s.value.kind != kindObject {
		return nil
	}
	return s.value.get(keyword)
}

// read registers a schema and those inside it.
func (d *document) read(v *value, path string, parent *resource, isRoot bool) (*schema, error) {
	s := &schema{path: path, value: v, res: parent}
	if v.kind != kindObject && v.kind != kindTrue && v.kind != kindFalse {
		return nil, s.invalid("", "a schema is an object or a boolean, not "+kindNames[v.kind])
	}
	d.schemas[v] = s
	if err := d.identify(s, isRoot); err != nil {
		return nil, err
	}
	for i := range v.members {
		if err := d.readKeyword(s, &v.members[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// identify gives the schema its resource and registers its names.
func (d *document) identify(s *schema, isRoot bool) error {
	draft := draftOf(s.get("$schema"), s.res.draft)
	id, anchor, err := s.id(draft)
	if err != nil {
		return err
	}
	if isRoot || id != "" {
		uri, err := url.Parse(id)
		if err != nil {
			return s.invalid("$id", "is not a URI reference")
		}
		if s.get("$ref") != nil && !isRoot && !d.dialect {
			s.outer = s.res
		}
		s.res = &resource{
			base: s.res.base.ResolveReference(uri), draft: draft, root: s,
			anchors: map[string]*schema{}, dynamic: map[string]*schema{},
		}
		if _, ok := d.resources[s.res.base.String()]; !ok {
			d.resources[s.res.base.String()] = s.res
		}
	}
	if anchor != "" {
		s.res.anchors[anchor] = s
	}
	if v := s.get("$anchor"); v != nil && draft >= draft2019 {
		s.res.anchors[v.text] = s
	}
	if v := s.get("$dynamicAnchor"); v != nil && draft >= draft2020 {
		s.res.anchors[v.text], s.res.dynamic[v.text] = s, s
	}
	if v := s.get("$recursiveAnchor"); v != nil && v.kind == kindTrue && draft == draft2019 {
		s.res.dynamic[recursiveAnchor] = s
	}
	return nil
}

// id is the schema's $id without an empty fragment, and the anchor that old
// drafts give in its place.
func (s *schema) id(draft int) (id, anchor string, err error) {
	keyword := "$id"
	if draft == draft4 {
		keyword = "id"
	}
	v := s.get(keyword)
	if v == nil || draft <= draft7 && s.get("$ref") != nil {
		return "", "", nil // old drafts ignore what stands beside $ref
	}
	if v.kind != kindString {
		return "", "", s.invalid(keyword, "must be a string")
	}
	id, anchor, _ = strings.Cut(v.text, "#")
	return id, anchor, nil
}

var drafts = map[string]int{
	"json-schema.org/draft-03/schema": draft4, "json-schema.org/draft-04/schema": draft4,
	"json-schema.org/draft-05/schema": draft4, "json-schema.org/draft-06/schema": draft6,
	"json-schema.org/draft-07/schema": draft7, "json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft/2020-12/schema": draft2020,
}

// draftOf reads $schema. Of an unknown dialect the keywords are read as the
// surrounding schema's.
func draftOf(v *value, inherited int) int {
	if v == nil {
		return inherited
	}
	uri := strings.TrimSuffix(v.text, "#")
	uri = strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://")
	if draft, ok := drafts[uri]; ok {
		return draft
	}
	return inherited
}

// A shelf says where the subschemas of a keyword are.
type shelf uint8

const (
	shelfSingle shelf = iota + 1 // the value
	shelfList                    // its items
	shelfMap                     // its members
	shelfEither                  // the value, or its items if it is an array
	shelfDeps                    // its members but for arrays of names
)

var shelves = map[string]shelf{
	"additionalItems": shelfSingle, "additionalProperties": shelfSingle, "contains": shelfSingle,
	"contentSchema": shelfSingle, "else": shelfSingle, "if": shelfSingle, "not": shelfSingle,
	"propertyNames": shelfSingle, "then": shelfSingle, "unevaluatedItems": shelfSingle,
	"unevaluatedProperties": shelfSingle, "items": shelfEither,
	"allOf": shelfList, "anyOf": shelfList, "oneOf": shelfList, "prefixItems": shelfList,
	"$defs": shelfMap, "definitions": shelfMap, "dependentSchemas": shelfMap,
	"patternProperties": shelfMap, "properties": shelfMap, "dependencies": shelfDeps,
}

func (d *document) readKeyword(s *schema, m *member) error {
	d.annotated = d.annotated || strings.HasPrefix(m.key, "unevaluated")
	path := s.path + "/" + escapePointer(m.key)
	kind := shelves[m.key]
	if kind == shelfEither {
		kind = shelfSingle
		if m.value.kind == kindArray {
			kind = shelfList
		}
	}
	switch kind {
	case shelfSingle:
		inner, err := d.read(&m.value, path, s.res, false)
		if err == nil && (m.key == "then" || m.key == "else") {
			inner.within = s
		}
		return err
	case shelfList:
		if m.value.kind != kindArray {
			return s.invalid(m.key, "must be an array of schemas")
		}
		for i := range m.value.items {
			inner, err := d.read(&m.value.items[i], path+"/"+strconv.Itoa(i), s.res, false)
			if err != nil {
				return err
			}
			if strings.HasSuffix(m.key, "Of") {
				inner.within = s
			}
		}
	case shelfMap, shelfDeps:
		if m.value.kind != kindObject {
			return s.invalid(m.key, "must be an object of schemas")
		}
		for i := range m.value.members {
			sub := &m.value.members[i]
			if kind == shelfDeps && sub.value.kind == kindArray {
				continue
			}
			if _, err := d.read(&sub.value, path+"/"+escapePointer(sub.key), s.res, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve finds the schema that a reference in s means, and the anchor by which
// it was named, if it was.
func (d *document) resolve(s *schema, keyword string) (target *schema, anchor string, err error) {
	v := s.get(keyword)
	if v.kind != kindString {
		return nil, "", s.invalid(keyword, "must be a string")
	}
	target, anchor, err = d.resolveIn(s.res, s, keyword, v.text)
	if err == nil && s.outer != nil && keyword == "$ref" {
		if other, _, err := d.resolveIn(s.outer, s, keyword, v.text); err != nil || other != target {
			return nil, "", s.invalid(keyword, "stands beside $id, which not all drafts read alike: name one in $schema")
		}
	}
	return target, anchor, err
}

func (d *document) resolveIn(res *resource, s *schema, keyword, ref string) (target *schema, anchor string, err error) {
	uri, fragment, _ := strings.Cut(ref, "#")
	if uri != "" {
		parsed, err := url.Parse(uri)
		if err != nil {
			return nil, "", s.invalid(keyword, "is not a URI reference")
		}
		if res = d.resources[res.base.ResolveReference(parsed).String()]; res == nil {
			return nil, "", s.invalid(keyword, "refers to "+strconv.Quote(ref)+", which is outside of the schema")
		}
	}
	if fragment, err = url.PathUnescape(fragment); err != nil {
		return nil, "", s.invalid(keyword, "is not a URI reference")
	}
	if fragment == "" || fragment[0] == '/' {
		target, err = d.pointer(s, keyword, res.root, fragment)
		return target, "", err
	}
	if target = res.anchors[fragment]; target == nil {
		return nil, "", s.invalid(keyword, "refers to "+strconv.Quote(ref)+", which is not in the schema")
	}
	return target, fragment, nil
}

// pointer follows a JSON pointer. What it leads to is read as a schema even
// where no keyword says that it is one.
func (d *document) pointer(s *schema, keyword string, from *schema, pointer string) (*schema, error) {
	v, nearest, path := from.value, from, from.path
	if pointer != "" {
		for _, token := range strings.Split(pointer[1:], "/") {
			token = unescapePointer(token)
			if v = v.child(token); v == nil {
				return nil, s.invalid(keyword, "refers to "+strconv.Quote("#"+pointer)+", which is not in the schema")
			}
			path += "/" + escapePointer(token)
			if known := d.schemas[v]; known != nil {
				nearest = known
			}
		}
	}
	if known := d.schemas[v]; known != nil {
		return known, nil
	}
	return d.read(v, path, nearest.res, false)
}

// child is the member or item that a token of a JSON pointer names, or nil.
func (v *value) child(token string) *value {
	if v.kind == kindObject {
		return v.get(token)
	}
	i, err := strconv.Atoi(token)
	if v.kind != kindArray || err != nil || i < 0 || i >= len(v.items) || strconv.Itoa(i) != token {
		return nil
	}
	return &v.items[i]
}

// A scope is the dynamic scope of a schema: for each dynamic anchor, the
// outermost schema of that name that evaluation has passed through. Equal
// scopes are the same pointer.
type scope struct {
	key     string
	anchors map[string]*schema
}

// enter is the scope after entering a resource.
func (c *compiler) enter(sc *scope, res *resource) *scope {
	next := &scope{anchors: maps.Clone(sc.anchors)}
	for name, s := range res.dynamic {
		if next.anchors[name] == nil {
			next.anchors[name] = s
		}
	}
	if len(next.anchors) == len(sc.anchors) {
		return sc
	}
	for _, name := range slices.Sorted(maps.Keys(next.anchors)) {
		next.key += name + "\x00" + next.anchors[name].path + "\x00"
	}
	if known := c.scopes[next.key]; known != nil {
		return known
	}
	c.scopes[next.key] = next
	return next
}
