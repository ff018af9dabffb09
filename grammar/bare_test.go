package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// TestBareLengths: a tool with many long texts in tags stays within the limits on
// work, and the texts within their bounds.
func TestBareLengths(t *testing.T) {
	e, err := findEnvelope(t, envelopeCases(t), "Qwen3.5-4B", true, false, false).parse()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ bound, yes, no int }{{50, 50, 51}, {1000, 1000, 1001}, {2000, 2000, 2001}, {50_000, 2000, 50_001}} {
		bounded := fmt.Sprintf(`{"type":"string","maxLength":%d}`, tt.bound)
		g, err := e.Grammar(Call{Mode: Required, Tools: []Tool{{Name: "get_weather", Strict: true, Schema: []byte(
			`{"properties":{"city":` + bounded + `,"days":` + bounded + `},"additionalProperties":false}`)}}})
		if err != nil {
			t.Errorf("at most %d characters: %v", tt.bound, err)
			continue
		}
		for _, n := range []int{tt.yes, tt.no} {
			text := "<tool_call>\n<function=get_weather>\n<parameter=city>\n" + strings.Repeat("x", n) + "\n</parameter>\n</function>\n</tool_call>"
			if g.Match([]byte(text)) != (n == tt.yes) {
				t.Errorf("at most %d characters: %d", tt.bound, n)
			}
		}
	}
}
