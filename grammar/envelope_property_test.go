package grammar

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// toolNames makes the names that random schemas use those of the stored parsers' tool.
var toolNames = strings.NewReplacer(
	`"a":`, `"city":`, `"b":`, `"days":`, `"c":`, `"city":`, `"ab":`, `"days":`, `"x":`, `"days":`,
	`"a"`, `"city"`, `"b"`, `"days"`, `"c"`, `"city"`, `"ab"`, `"days"`, `"x"`, `"days"`, `"^a":`, `"^c":`, `"b$":`, `"s$":`)

// randomTool is a tool with a random schema for which common/chat makes the stored
// parsers: it has a text for a city, and days that are none.
func randomTool(t *rapid.T) Tool {
	text := toolNames.Replace(string(schemaMaker{t}.document()))
	days := rapid.SampledFrom([]string{"integer", "number", "boolean", "array", "null"}).Draw(t, "days")
	shape := `{"properties":{"city":{"type":"string"},"days":{"type":["` + days + `","object"]}}}`
	text = strings.TrimSuffix(text, "}") + `,"type":"object","allOf":[` + shape + `]}`
	return Tool{Name: "get_weather", Schema: []byte(text), Strict: true}
}

// TestCallsOfRandomToolsAreValid is soundness in every template's notation: whatever
// is read of a call that the form admits, the tool's schema admits too.
func TestCallsOfRandomToolsAreValid(t *testing.T) {
	var envelopes []*Envelope
	for _, c := range envelopeCases(t) {
		if !c.Required || c.Parallel || c.Thinking || c.NoTools || c.Error != "" {
			continue
		}
		e, err := c.parse()
		if err != nil {
			t.Fatal(err)
		}
		if e.Calls() {
			envelopes = append(envelopes, e)
		}
	}
	want, err := Skeleton(envelopeTools, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		tool := randomTool(t)
		v, err := validator(tool.Schema)
		if err != nil {
			t.Skip(err) // no schema to the other library: nothing to compare
		}
		bare, err := Skeleton([]Tool{tool}, Limits{})
		if err != nil || string(bare[0].Schema) != string(want[0].Schema) {
			counts["other parser"]++
			return
		}
		e := rapid.SampledFrom(envelopes).Draw(t, "envelope")
		g, err := e.Grammar(Call{Tools: []Tool{tool}, Mode: Required})
		var u *Unenforceable
		var invalid *InvalidSchema
		switch {
		case errors.As(err, &u):
			counts[u.Reason]++
			return
		case errors.As(err, &invalid): // it refers to itself
			return
		case err != nil:
			t.Fatalf("%s: %v", tool.Schema, err)
		}
		counts["compiled"]++
		w := newWalker(g, rapid.Uint64().Draw(t, "seed"), 400) // marks and all
		for range 10 {
			text := w.text()
			if err := g.Check([]byte(text)); err != nil {
				t.Fatalf("%s\nwalked to %s\nbut %v", tool.Schema, text, err)
			}
			r := e.Read()
			var a toldAnswer
			a.take(outer, append(r.Push(text), r.Close(false)...))
			if len(a.Calls) != 1 || !a.Calls[0].Ended || a.Calls[0].Name != tool.Name {
				t.Fatalf("%s\nadmits %q, read as %+v", tool.Schema, text, a)
			}
			if !isValid(v, a.Calls[0].Arguments) {
				t.Fatalf("%s\nadmits %q, a call with %s", tool.Schema, text, a.Calls[0].Arguments)
			}
		}
	})
	t.Log(counts)
	if counts["compiled"] == 0 {
		t.Error("no schema was compiled")
	}
}
