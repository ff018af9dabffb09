package grammar

import (
	"errors"
	"strings"
	"testing"
)

// Names that common/chat does not read as they are written cannot be required.
func TestTaggedNames(t *testing.T) {
	cases := envelopeCases(t)
	c := findEnvelope(t, cases, "Qwen3.5-4B", true, false, false)
	for _, name := range []string{" city", "city ", "city\n", ""} {
		c := c
		c.Envelope.Parser = renamed(c.Envelope.Parser, name)
		e, err := c.parse()
		if err != nil {
			t.Fatal(err)
		}
		schema := `{"type":"object","properties":{` + quote(name) + `:{"const":1}},"required":[` + quote(name) + `],"additionalProperties":false}`
		_, err = e.Grammar(Call{Tools: []Tool{{Name: "get_weather", Schema: []byte(schema), Strict: true}}, Mode: Required})
		var unenforceable *Unenforceable
		if !errors.As(err, &unenforceable) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// renamed is a parser in which the argument city has another name.
func renamed(parser, name string) string {
	return strings.ReplaceAll(parser, `"literal":"city"`, `"literal":`+quote(name))
}
