package grammar

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// list joins n texts with commas.
func list(n int, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, ",")
}

func nested(n int, open, inner, shut string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// TestHostile has schemas that would take for ever. Each is refused, and says
// where. The time is logged, not checked: what is bounded is work.
func TestHostile(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"anyOf times allOf", `{"allOf":[` + list(10, func(i int) string {
			return `{"anyOf":[` + list(4, func(j int) string {
				return fmt.Sprintf(`{"properties":{"p%d":{"const":%d}},"required":["p%d"]}`, i, j, i)
			}) + `]}`
		}) + `]}`, "schema at /allOf: has too many branches"},
		{"counting pattern", `{"properties":{"x":{"type":"string","pattern":"^.*a.{20}$"}}}`,
			"schema at /properties/x/pattern: needs an automaton with too many states"},
		{"back reference", `{"items":{"type":"string","pattern":"(a)\\1"}}`,
			"schema at /items/pattern: refers back to a group, which no automaton can"},
		{"nested repetitions", `{"type":"string","pattern":"^((((a{100}){100}){100}){100})$"}`,
			"schema at /pattern: needs an automaton with too many states"},
		{"empty repetitions", `{"type":"string","pattern":"(?:(?:){999999999}){999999999}"}`,
			"schema at /pattern: takes too much work to compile"},
		{"10,000 properties", `{"properties":{` + list(10_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`,
			"schema: has 108906 bytes, more than 65536"},
		{"4,500 properties", `{"$defs":{"a":{"properties":{` + list(4500, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}},"items":{"$ref":"#/$defs/a"}}`,
			"schema at /$defs/a/properties: has too many optional properties"},
		{"deep", nested(40, `{"items":`, "{}", "}"), "schema: is nested deeper than 32 levels"},
		{"very deep", nested(1_000_000, "[", "", "]"), "schema: is nested deeper than 32 levels"},
		{"circle", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			"schema at /$defs/a/$ref: refers to itself without anything between"},
		{"circle through allOf", `{"allOf":[{"$ref":"#"}]}`, "schema at /allOf: refers to itself without anything between"},
		{"not of many", `{"not":{"properties":{` + list(300, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}}`,
			"schema at /not: has too many branches"},
		{"overlapping oneOf", `{"oneOf":[` + list(20, func(i int) string {
			return fmt.Sprintf(`{"type":"object","properties":{"a%d":{"type":"string"},"b%d":{"type":"integer"}}}`, i, i)
		}) + `]}`, "schema at /oneOf: has too many branches"},
		{"overlapping patterns", `{"patternProperties":{` + list(12, func(i int) string { return fmt.Sprintf(`"%c":{"minimum":%d}`, 'a'+i, i) }) + `}}`,
			"schema at /patternProperties: has too many branches"},
		{"great divisor", `{"properties":{"n":{"type":"integer","multipleOf":9973}}}`, "schema at /properties/n/multipleOf: takes too much work to compile"},
		{"greater divisor", `{"type":"integer","multipleOf":123456789}`, "schema at /multipleOf: needs an automaton with too many states"},
		{"great number", `{"maximum":1e999999999}`, "schema at /maximum: is a number with too many digits"},
		{"counted items", `{"properties":{"x":{"contains":{"type":"string"},"minContains":64,"maxContains":100,"maxItems":400}}}`,
			"schema at /properties/x/contains: counts contained items in too many ways"},
		{"entangled keys", `{"properties":{` + list(40, func(i int) string { return fmt.Sprintf(`"a%d":{}`, i) }) + `},"dependentRequired":{` +
			list(20, func(i int) string { return fmt.Sprintf(`"a%d":["a%d"]`, i, 39-i) }) + `}}`, "schema: needs too many rules"},
		{"growing combinations", `{"properties":{"x":{"allOf":[{"$ref":"#"},{"properties":{"y":{"$ref":"#"}}}]},"y":{"not":{"$ref":"#/properties/x"}}}}`,
			"schema at /properties/y: has too many branches"},
	}
	for _, test := range tests {
		start := cpuTime()
		_, err := FromSchema([]byte(test.schema), Options{Strict: true})
		t.Logf("%s: %v", test.name, cpuTime()-start)
		if diff := cmp.Diff(test.want, errText(err)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestLarge has schemas that are large and fine.
func TestLarge(t *testing.T) {
	tests := []struct{ name, schema, instance string }{
		{"great counts", `{"type":"array","items":{"type":"string","minLength":5000,"maxLength":1000000},"maxItems":1000000}`, `["` + strings.Repeat("x", 5000) + `"]`},
		{"great counts in a pattern", `{"type":"string","pattern":"^[^\\x00\\n]{3,100000}$","minLength":5}`, `"` + strings.Repeat("x", 5000) + `"`},
		{"500 optional properties", `{"additionalProperties":false,"properties":{` +
			list(500, func(i int) string { return fmt.Sprintf(`"prop%d":{"type":"string"}`, i) }) + `}}`, `{"prop3":"","prop499":"x"}`},
		{"2,000 required properties", `{"properties":{` + list(2000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) +
			`},"required":[` + list(2000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
			`{` + list(2000, func(i int) string { return fmt.Sprintf(`"p%d":%d`, i, i) }) + `}`},
		{"any of 200 keys", `{"anyOf":[` + list(200, func(i int) string { return fmt.Sprintf(`{"required":["a%d"]}`, i) }) + `]}`, `{"a7":1,"b":2}`},
		{"2,000 strings", `{"enum":[` + list(2000, func(i int) string { return fmt.Sprintf(`"value %d"`, i*7919%2000) }) + `]}`, `"value 1234"`},
		{"50 kinds of object", `{"oneOf":[` + list(50, func(i int) string {
			return fmt.Sprintf(`{"type":"object","properties":{"kind":{"const":"k%d"},"a":{"type":"string"},"b%d":{"type":"integer"}},"required":["kind"]}`, i, i)
		}) + `]}`, `{"kind":"k42","a":"x","b42":7}`},
		{"30 times not", nested(30, `{"not":`, `{"type":"string"}`, "}"), `"x"`},
		{"Unicode classes", `{"type":"string","pattern":"^[\\p{L}\\p{N}]+([ -][\\p{Lu}\\p{Ll}]+){0,3}$","maxLength":20}`, `"Straße é"`},
	}
	for _, test := range tests {
		start := cpuTime()
		g, err := FromSchema([]byte(test.schema), Options{Strict: true})
		t.Logf("%s: %v", test.name, cpuTime()-start)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if err := g.Check([]byte(test.instance)); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
