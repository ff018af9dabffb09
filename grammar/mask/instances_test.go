package mask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/b3os/b3infer/grammar"
)

// TestInstancesAlongMasks makes instances of random schemas without their
// grammars, and near misses of them. Along an instance the masks always have a
// token that leads on, and it may end where it does. Where an independent
// validator refuses a near miss, so do they.
func TestInstancesAlongMasks(t *testing.T) {
	v := smallVocabulary()
	byText := textTokens(v)
	instances, misses := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 40))
		schema := schemaMaker{random}.document()
		validator, err := validatorOf(schema)
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		g, err := grammar.FromSchema([]byte(schema), grammar.Options{Strict: true, Unique: true})
		if refused := (*grammar.Unenforceable)(nil); errors.As(err, &refused) {
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		a := automaton(t, g, v, Limits{})
		for range 4 {
			m := newInstanceMaker(t, random, schema)
			text := m.instance()
			if text == "" {
				continue // the schema asks for more different items than were found
			}
			if !isValidText(validator, text) {
				t.Fatalf("%s: made %s, which is no instance", schema, text)
			}
			instances++
			if rest := readAlong(t, a, byText, text); rest != nil && !m.spelled {
				t.Fatalf("%s\nhas the instance %s\nwhich is refused before %q", schema, text, *rest)
			}
			for range 5 {
				miss := nearMiss(t, random, text)
				if isValidText(validator, miss) {
					continue
				}
				misses++
				if readAlong(t, a, byText, miss) == nil {
					t.Fatalf("%s\nhas not the instance %s\nwhich is admitted", schema, miss)
				}
			}
		}
	}
	t.Logf("%d instances, %d near misses", instances, misses)
	if instances < 400 || misses < 1000 {
		t.Error("too few")
	}
}

func isValidText(validator *jsonschema.Schema, text string) bool {
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	return err == nil && validator.Validate(instance) == nil
}

// readAlong accepts a text token by token. It is nil where the text may end
// there, or what could not be read.
func readAlong(t *testing.T, a *Automaton, byText map[string]int32, text string) *string {
	t.Helper()
	s := start(t, a, "")
	for text != "" {
		token := longestToken(a.vocab, byText, maskOf(t, s), text)
		if token == noToken {
			return &text
		}
		if err := s.Accept(token); err != nil {
			t.Fatal(err)
		}
		text = text[len(a.vocab.piece(token)):]
	}
	if !s.Done() {
		return &text
	}
	return nil
}

// An instanceMaker makes instances of the schemas of a schemaMaker.
type instanceMaker struct {
	*rand.Rand
	t      *testing.T
	defs   map[string]json.RawMessage
	root   json.RawMessage
	depth  int
	unique int  // arrays of unique items around
	failed bool // there were too few different items
	// spelled says that the grammar may spell objects in another way: where it
	// compares their texts it has one order of keys for all, and few free keys.
	spelled bool
}

func newInstanceMaker(t *testing.T, random *rand.Rand, schema string) *instanceMaker {
	m := &instanceMaker{Rand: random, t: t, root: json.RawMessage(schema)}
	m.defs = map[string]json.RawMessage{}
	for _, d := range m.members(m.schema(m.root).Defs) {
		m.defs["#/$defs/"+d.key] = d.value
	}
	return m
}

// instance is an instance as grammars spell it, or empty.
func (m *instanceMaker) instance() string {
	text, err := grammar.Compact([]byte(m.of(m.root)))
	if err != nil {
		m.t.Fatal(err)
	}
	if m.failed {
		return ""
	}
	return string(text)
}

// A madeSchema is what schemaMaker writes.
type madeSchema struct {
	Defs                 json.RawMessage `json:"$defs"`
	Ref                  string          `json:"$ref"`
	Type                 json.RawMessage
	Minimum, Maximum     *int
	ExclusiveMinimum     *float64
	MultipleOf           *float64
	MinLength, MaxLength *int
	Pattern, Format      string
	Enum, AnyOf          []json.RawMessage
	Const                json.RawMessage
	Properties           json.RawMessage
	PatternProperties    map[string]json.RawMessage
	AdditionalProperties json.RawMessage
	Required             []string
	Items                json.RawMessage
	PrefixItems          []json.RawMessage
	MinItems, MaxItems   *int
	UniqueItems          bool
}

func (m *instanceMaker) schema(raw json.RawMessage) (s madeSchema) {
	if err := json.Unmarshal(raw, &s); err != nil {
		m.t.Fatalf("%s: %v", raw, err)
	}
	return s
}

type rawMember struct {
	key   string
	value json.RawMessage
}

// members is the members of an object in order.
func (m *instanceMaker) members(raw json.RawMessage) (out []rawMember) {
	if raw == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, err := d.Token()
	for err == nil && d.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = d.Token(); err == nil {
			err = d.Decode(&value)
			out = append(out, rawMember{key.(string), value})
		}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *instanceMaker) pick(from ...string) string { return from[m.IntN(len(from))] }

func orElse(p *int, other int) int {
	if p == nil {
		return other
	}
	return *p
}

// of is an instance of a schema.
func (m *instanceMaker) of(raw json.RawMessage) string {
	s := m.schema(raw)
	m.depth++
	defer func() { m.depth-- }()
	switch {
	case s.Ref != "":
		return m.of(m.defs[s.Ref])
	case s.Enum != nil:
		return string(s.Enum[m.IntN(len(s.Enum))])
	case s.Const != nil:
		return string(s.Const)
	case s.AnyOf != nil:
		return m.of(s.AnyOf[m.IntN(len(s.AnyOf))])
	}
	switch kind := string(s.Type); kind {
	case `"integer"`:
		low := orElse(s.Minimum, min(orElse(s.Maximum, 5000), 0)-20)
		return strconv.Itoa(low + m.IntN(orElse(s.Maximum, low+40)-low+1))
	case `"number"`:
		return m.number(s)
	case `"string"`:
		text, err := json.Marshal(m.text(s))
		if err != nil {
			m.t.Fatal(err)
		}
		return string(text)
	case `"array"`:
		return m.array(s)
	case `"object"`:
		return m.object(s)
	case `["boolean","null","integer"]`:
		return m.pick("true", "false", "null", "12", "-7")
	default:
		m.t.Fatalf("no instances of type %s are known", kind)
		return ""
	}
}

func (m *instanceMaker) number(s madeSchema) string {
	switch {
	case s.MultipleOf != nil:
		digits := map[float64]int{0.5: 1, 0.01: 2, 3: 0}[*s.MultipleOf]
		text := strconv.FormatFloat(float64(1+m.IntN(500))**s.MultipleOf, 'f', digits, 64)
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return text
	case s.ExclusiveMinimum != nil:
		return m.pick("0.5", "7", "1234.125", "100000")
	}
	texts := []string{"0", "-0.25", "17", "-123456.75", "1e10", "2.5E-3"}
	if m.unique > 0 {
		texts = texts[:4] // where texts are compared, numbers have no exponents
	}
	return m.pick(texts...)
}

// someTexts are texts that the patterns and formats of schemaMaker have.
var someTexts = map[string][]string{
	`^[a-z]+$`: {"a", "hello", "zzz"}, `^\d{3}-\d{4}$`: {"123-4567"}, `^(red|green|blue)+$`: {"red", "bluegreen"},
	`a`: {"a", "cab", "日a\n"}, `^[A-Z][a-z0-9_]{0,30}$`: {"A", "Word_1"}, `^\S*$`: {"", "x-y", "é日"}, `^.{2,4}$`: {"ab", "日本語", "x\"y"},
	"date": {"2024-02-29"}, "date-time": {"2024-02-29T12:30:59Z", "1999-12-31T23:59:59.25+01:00"}, "time": {"08:15:00Z"},
	"uuid": {"123e4567-e89b-12d3-a456-426614174000"}, "email": {"jane.doe@example.com"}, "ipv4": {"192.168.0.1"},
	"ipv6": {"2001:db8::1", "::"}, "hostname": {"www.example.org"},
}

func (m *instanceMaker) text(s madeSchema) string {
	if known := someTexts[s.Pattern+s.Format]; known != nil {
		return m.pick(known...)
	}
	low := orElse(s.MinLength, 0)
	n := low + m.IntN(min(orElse(s.MaxLength, low+12), low+12)-low+1)
	var b strings.Builder
	for range n {
		b.WriteString(m.pick("a", "b", "7", " ", "\"", "\\", "\n", "é", "日", "😀", "/", "\u0001"))
	}
	return b.String()
}

func (m *instanceMaker) array(s madeSchema) string {
	low, high := orElse(s.MinItems, 0), orElse(s.MaxItems, 4)
	if m.depth > 6 {
		high = low
	}
	if len(s.PrefixItems) > 0 && string(s.Items) == "false" {
		high = min(high, len(s.PrefixItems))
	}
	if s.UniqueItems {
		m.unique++
		defer func() { m.unique-- }()
	}
	n := low + m.IntN(max(min(high, low+3)-low, 0)+1)
	var items []string
	for tries := 0; len(items) < n; tries++ {
		item := `"free"`
		if i := len(items); i < len(s.PrefixItems) {
			item = m.of(s.PrefixItems[i])
		} else if s.Items != nil {
			item = m.of(s.Items)
		}
		if s.UniqueItems && slices.Contains(items, item) {
			if tries > 50 {
				m.failed = true
				break
			}
			continue
		}
		items = append(items, item)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (m *instanceMaker) object(s madeSchema) string {
	var members []string
	add := func(key, value string) {
		quoted, err := json.Marshal(key)
		if err != nil {
			m.t.Fatal(err)
		}
		members = append(members, string(quoted)+":"+value)
	}
	for _, p := range m.members(s.Properties) {
		if slices.Contains(s.Required, p.key) || m.depth < 6 && m.IntN(2) == 0 {
			add(p.key, m.of(p.value))
		}
	}
	for i := range m.IntN(2) { // a second one may have no place inside of unique items
		switch more := string(s.AdditionalProperties); {
		case s.PatternProperties["^x"] != nil:
			add(fmt.Sprintf("x%d", i), m.of(s.PatternProperties["^x"]))
		case more == "":
			add(fmt.Sprintf("free %d", i), m.pick(`{"a":[1,null]}`, `"日本"`, `true`))
		case more != "false":
			add(fmt.Sprintf("more %d", i), m.of(s.AdditionalProperties))
		}
	}
	m.spelled = m.spelled || m.unique > 0 && len(members) > 0
	return "{" + strings.Join(members, ",") + "}"
}

// A jsonPiece is a value, or a key, in a JSON text.
type jsonPiece struct {
	from, to int
	isKey    bool
}

// nearMiss is the text with one value or key exchanged.
func nearMiss(t *testing.T, random *rand.Rand, text string) string {
	pieces := jsonPieces(t, text)
	p := pieces[random.IntN(len(pieces))]
	other := []string{`null`, `true`, `0`, `-1`, `2.5`, `1000000`, `""`, `"x"`, `"no-such value"`, `[]`, `{}`, `[1,1]`, `{"x":1}`}[random.IntN(13)]
	switch old := text[p.from:p.to]; {
	case p.isKey:
		other = fmt.Sprintf(`"other %d"`, random.IntN(100))
	case old[0] == '"' && random.IntN(2) == 0:
		other = old[:len(old)-1] + []string{"x", " ", "!", "ä"}[random.IntN(4)] + `"`
	case old[0] == '[' && len(old) > 2 && random.IntN(2) == 0:
		other = old[:len(old)-1] + "," + old[1:]
	}
	return text[:p.from] + other + text[p.to:]
}

// jsonPieces is all values and keys of a compact JSON text.
func jsonPieces(t *testing.T, text string) (pieces []jsonPiece) {
	d := json.NewDecoder(strings.NewReader(text))
	type level struct{ at, tokens int } // the piece that is open, and tokens in it
	var open []level
	for {
		from := int(d.InputOffset())
		token, err := d.Token()
		if err == io.EOF {
			return pieces
		} else if err != nil {
			t.Fatal(err)
		}
		to := int(d.InputOffset())
		for from < to && (text[from] == ',' || text[from] == ':') {
			from++
		}
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			pieces[open[len(open)-1].at].to = to
			open = open[:len(open)-1]
			continue
		}
		isKey := false
		if n := len(open); n > 0 {
			isKey = text[pieces[open[n-1].at].from] == '{' && open[n-1].tokens%2 == 0
			open[n-1].tokens++
		}
		pieces = append(pieces, jsonPiece{from, to, isKey})
		if delim != 0 {
			open = append(open, level{at: len(pieces) - 1})
		}
	}
}
