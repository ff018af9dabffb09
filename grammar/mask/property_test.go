package mask

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/b3os/b3infer/grammar"
)

// walksEnv is how many random schemas TestWalks tries, in place of 400.
const walksEnv = "B3INFER_MASK_WALKS"

// TestWalks takes random ways through the masks of random schemas. Each of them
// must end in a text that an independent validator accepts, and that the grammar
// has too.
func TestWalks(t *testing.T) {
	schemas := 400
	if n, err := strconv.Atoi(os.Getenv(walksEnv)); err == nil {
		schemas = n
	}
	v := smallVocabulary()
	compiled, complete, cut := 0, 0, 0
	for seed := range uint64(schemas) {
		m := schemaMaker{rand.New(rand.NewPCG(seed, 20))}
		text := m.document()
		validator, err := validatorOf(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		g, err := grammar.FromSchema([]byte(text), grammar.Options{Strict: true, Unique: true})
		if refused := (*grammar.Unenforceable)(nil); errors.As(err, &refused) {
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		compiled++
		a := automaton(t, g, v, Limits{})
		for range 4 {
			out, ended := walkToEnd(t, start(t, a, ""), m.Rand, 40, 1500)
			if !ended {
				cut++
				continue
			}
			complete++
			if err := g.Check([]byte(out)); err != nil {
				t.Fatalf("%s\nwalked to %s\nwhich the grammar refuses: %v", text, out, err)
			}
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
			if err != nil {
				t.Fatalf("%s\nwalked to %s: %v", text, out, err)
			}
			if err := validator.Validate(instance); err != nil {
				t.Fatalf("%s\nwalked to %s: %v", text, out, err)
			}
		}
	}
	t.Logf("of %d schemas %d compile; %d walks were complete, %d cut", schemas, compiled, complete, cut)
	if compiled < schemas/2 || cut*50 > complete {
		t.Errorf("too few of %d schemas compile (%d), or walks end (%d of %d)", schemas, compiled, complete, complete+cut)
	}
}

func validatorOf(schema string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// walkToEnd accepts random tokens, from some length on such as close what is
// open. It tells whether the text came to its end.
func walkToEnd(t testing.TB, s *Sequence, random *rand.Rand, patience, most int) (text string, ended bool) {
	t.Helper()
	var out bytes.Buffer
	v := s.a.vocab
	for s.Len() < most {
		words := maskOf(t, s)
		if s.Done() && (s.Len() > patience || random.IntN(4) == 0) {
			return out.String(), true
		}
		token := int32(noToken)
		if s.Len() > patience {
			token = closing(words)
		}
		if token == noToken {
			choices := appendBits(nil, words)
			if token = choices[random.IntN(len(choices))]; v.kinds[token] == End {
				return out.String(), true
			}
		}
		if err := s.Accept(token); err != nil {
			t.Fatalf("after %s: %v", out.String(), err)
		}
		out.Write(v.piece(token))
	}
	return out.String(), false
}

// closing is a byte that ends something, if one is allowed. Where a tilde is, the
// text is inside of a string.
func closing(words []uint64) int32 {
	ends := "}]\""
	if hasBit(words, '~') {
		ends = "\""
	}
	for _, b := range []byte(ends) {
		if hasBit(words, int32(b)) {
			return int32(b)
		}
	}
	return noToken
}

// A schemaMaker draws random schemas of the kind that callers send.
type schemaMaker struct{ *rand.Rand }

func (m schemaMaker) pick(from ...string) string { return from[m.IntN(len(from))] }

func (m schemaMaker) document() string {
	root := m.schema(3)
	return `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"d":{"type":"array","items":` + m.schema(1) + `},"list":{"type":"object","properties":{"next":{"$ref":"#/$defs/list"},"v":{"type":"integer"}},"required":["v"]}},` + strings.TrimPrefix(root, "{")
}

func (m schemaMaker) schema(depth int) string {
	kinds := 9
	if depth > 0 {
		kinds = 14
	}
	switch m.IntN(kinds) {
	case 0:
		return `{"type":"integer"` + m.maybe(`,"minimum":-`+m.pick("0", "5", "1000")) + m.maybe(`,"maximum":`+m.pick("7", "99", "12345")) + `}`
	case 1:
		return `{"type":"number"` + m.maybe(`,"exclusiveMinimum":`+m.pick("-1.5", "0")) + m.maybe(`,"multipleOf":`+m.pick("0.5", "0.01", "3")) + `}`
	case 2:
		return `{"type":"string"` + m.maybe(`,"minLength":`+m.pick("1", "3", "10")) + m.maybe(`,"maxLength":`+m.pick("10", "20", "300")) + `}`
	case 3:
		return `{"type":"string","pattern":"` + m.pick(`^[a-z]+$`, `^\\d{3}-\\d{4}$`, `^(red|green|blue)+$`, `a`, `^[A-Z][a-z0-9_]{0,30}$`, `^\\S*$`, `^.{2,4}$`) + `"}`
	case 4:
		return `{"type":"string","format":"` + m.pick("date", "date-time", "time", "uuid", "email", "ipv4", "ipv6", "hostname") + `"}`
	case 5:
		return `{"enum":[` + m.pick(`"red","green","blue"`, `1,2,3`, `"a","ab","abc",null`, `true,[1,"x"],{"a":{"b":null}}`) + `]}`
	case 6:
		return `{"type":["boolean","null","integer"]}`
	case 7:
		return `{"$ref":"#/$defs/` + m.pick("d", "list") + `"}`
	case 8:
		return `{"const":` + m.pick(`"é\n\"日本"`, `12`, `"fixed"`, `{"a":[1,2]}`) + `}`
	case 9, 10:
		return m.object(depth)
	case 11:
		return `{"type":"array","items":` + m.schema(depth-1) + m.maybe(`,"minItems":`+m.pick("1", "2")) + m.maybe(`,"maxItems":`+m.pick("2", "3", "150")) + m.maybe(`,"uniqueItems":true`) + `}`
	case 12:
		return `{"anyOf":[` + m.schema(depth-1) + `,` + m.schema(depth-1) + `,` + m.schema(depth-1) + `]}`
	}
	return `{"type":"array","prefixItems":[` + m.schema(depth-1) + `,` + m.schema(depth-1) + `]` + m.maybe(`,"items":false`) + m.maybe(`,"uniqueItems":true`) + m.maybe(`,"minItems":1`) + `}`
}

func (m schemaMaker) maybe(text string) string {
	if m.IntN(2) == 0 {
		return ""
	}
	return text
}

func (m schemaMaker) object(depth int) string {
	var properties, required []string
	for _, i := range m.Perm(8)[:m.IntN(6)] {
		name := []string{"name", "age", "a", "ab", "abc", "items", "type", "naïve \\\"key\\\""}[i]
		properties = append(properties, fmt.Sprintf(`"%s":%s`, name, m.schema(depth-1)))
		if m.IntN(2) == 0 {
			required = append(required, `"`+name+`"`)
		}
	}
	out := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]`
	switch m.IntN(4) {
	case 0:
		out += `,"additionalProperties":` + m.schema(depth-1)
	case 1:
		out += `,"additionalProperties":false`
	case 2:
		out += `,"patternProperties":{"^x":` + m.schema(depth-1) + `},"additionalProperties":false`
	}
	return out + "}"
}
