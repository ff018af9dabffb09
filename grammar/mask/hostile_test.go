package mask

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/b3os/b3infer/grammar"
)

// wideVocabulary has 152,000 tokens: bytes, and words with and without what
// stands around them in JSON.
var wideVocabulary = sync.OnceValue(func() *Vocabulary {
	random := rand.New(rand.NewPCG(8, 8))
	seen := map[string]bool{}
	var pieces [][]byte
	add := func(piece string) {
		if !seen[piece] {
			seen[piece] = true
			pieces = append(pieces, []byte(piece))
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	syllables := strings.Fields("a an ar be ca co de di el en er es f g ha in ing ion is la le li ma me n na ne o on or ra re ri ro s sa se st t ta te ti tion u un ve é 日 本 Я")
	before := []string{"", " ", "_", "-", "\"", "{\"", "/", "."}
	behind := []string{"", "", "", "", "s", "\"", "\",", ":", "_", ",", "\":", "0", "42", "\n", "}"}
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	for len(pieces) < 152_000-1 {
		word := pick(before)
		for range 1 + random.IntN(4) {
			word += pick(syllables)
		}
		add(word + pick(behind))
	}
	kinds := make([]Kind, len(pieces)+1)
	kinds[len(pieces)] = End
	return NewVocabulary(append(pieces, []byte("<|end|>")), kinds)
})

// repeated joins n texts with commas.
func repeated(n int, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, ",")
}

// wrapped is a text inside of n others.
func wrapped(n int, open, inner, shut string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// hostileSchemas would take for ever, or all memory, for compilers and automata
// that do not look out.
func hostileSchemas() map[string]string {
	properties := func(n int, schema string) string {
		return repeated(n, func(i int) string { return fmt.Sprintf(`"p%d":%s`, i, schema) })
	}
	return map[string]string{
		"anyOf times allOf": `{"allOf":[` + repeated(10, func(i int) string {
			return `{"anyOf":[` + repeated(4, func(j int) string {
				return fmt.Sprintf(`{"properties":{"p%d":{"const":%d}},"required":["p%d"]}`, i, j, i)
			}) + `]}`
		}) + `]}`,
		"anyOf of the same, nested": wrapped(9, `{"anyOf":[{"minProperties":1},`, `{"type":"object"}`, `,{"maxProperties":9}]}`),
		"oneOf of the same, nested": wrapped(9, `{"oneOf":[{"required":["a"]},`, `{"type":"object"}`, `,{"required":["b"]}]}`),
		"definitions that double": `{"$ref":"#/$defs/a0","$defs":{` + repeated(40, func(i int) string {
			return fmt.Sprintf(`"a%d":{"properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}}}`, i, i+1, i+1)
		}) + `,"a40":{}}}`,
		"definitions that meet": `{"$ref":"#/$defs/a0","$defs":{` + repeated(30, func(i int) string {
			return fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"not":{"properties":{"x":{"$ref":"#/$defs/a%d"}}}}]}`, i, i+1, i+1)
		}) + `,"a30":{}}}`,
		"all call all": `{"$ref":"#/$defs/a0","$defs":{` + repeated(40, func(i int) string {
			return fmt.Sprintf(`"a%d":{"anyOf":[`, i) + repeated(39, func(j int) string { return fmt.Sprintf(`{"items":{"$ref":"#/$defs/a%d"}}`, j) }) + `]}`
		}) + `}}`,
		"recursive unions":     `{"type":"array","items":{"anyOf":[{"$ref":"#"},{"type":"array","items":{"$ref":"#"},"maxItems":3},{"type":"array","items":{"$ref":"#"},"minItems":2}]}}`,
		"growing combinations": `{"properties":{"x":{"allOf":[{"$ref":"#"},{"properties":{"y":{"$ref":"#"}}}]},"y":{"not":{"$ref":"#/properties/x"}}}}`,

		"pattern that counts":        `{"type":"string","pattern":"^.*a.{20}$"}`,
		"pattern that counts, small": `{"type":"string","pattern":"^.*a.{9}$"}`,
		"patterns in one another":    `{"type":"string","pattern":"^((((a{100}){100}){100}){100})$"}`,
		"patterns of stars":          `{"type":"string","pattern":"^((((((a*)*b*)*c*)*d*)*e*)*f*)*$"}`,
		"long alternation":           `{"type":"string","pattern":"^(` + strings.ReplaceAll(repeated(3000, func(i int) string { return fmt.Sprintf("w%dx", i*7919%3000) }), ",", "|") + `)*$"}`,
		"optional letters":           `{"type":"string","pattern":"^` + strings.Repeat("a?", 800) + strings.Repeat("a", 800) + `$"}`,
		"pattern of four thousand":   `{"type":"string","pattern":"^([ab]{0,4000}c)$"}`,
		"Unicode, counted":           `{"type":"string","pattern":"^(\\p{L}\\p{M}*[\\p{Z}\\p{P}]?){1,60}$"}`,
		"Unicode and length":         `{"type":"string","pattern":"^\\p{Lu}(\\p{Ll}|[0-9]){3,}(\\P{C}x)+$","minLength":40,"maxLength":4000}`,
		"ways, counted":              `{"type":"string","pattern":"arn:([^:\n]*):([^:\n]*):([^:\n]*):([0-9]{12}):([^:\n]*)","minLength":20,"maxLength":2048}`,
		"lookaheads":                 `{"type":"string","pattern":"^` + strings.Repeat(`(?=.*a)(?!.*b)(?=.*[cd]{3})`, 30) + `.*$"}`,
		"back reference":             `{"items":{"type":"string","pattern":"(a)\\1"}}`,
		"many patterns of keys":      `{"patternProperties":{` + repeated(40, func(i int) string { return fmt.Sprintf(`"%c.*%c":{"minimum":%d}`, 'a'+i%26, 'a'+i/2, i) }) + `}}`,
		"names by a pattern":         `{"propertyNames":{"pattern":"^(a|b)*a(a|b){8}$"},"minProperties":3}`,

		"10,000 properties":           `{"properties":{` + properties(10_000, `{}`) + `}}`,
		"4,500 properties":            `{"properties":{` + properties(4500, `{}`) + `}}`,
		"4,500 closed properties":     `{"properties":{` + properties(4500, `{}`) + `},"additionalProperties":false}`,
		"3,000 closed properties":     `{"properties":{` + properties(3000, `{"enum":[1]}`) + `},"additionalProperties":false}`,
		"500 properties, 250 of them": `{"properties":{` + properties(500, `{}`) + `},"minProperties":250,"maxProperties":260,"additionalProperties":false}`,
		"entangled keys": `{"properties":{` + properties(40, `{}`) + `},"dependentRequired":{` +
			repeated(20, func(i int) string { return fmt.Sprintf(`"p%d":["p%d"]`, i, 39-i) }) + `}}`,
		"one of the keys": `{"anyOf":[` + repeated(250, func(i int) string { return fmt.Sprintf(`{"required":["a%d"]}`, i) }) + `]}`,
		"2,500 strings":   `{"enum":[` + repeated(2500, func(i int) string { return fmt.Sprintf(`"value number %d"`, i*7919%2500) }) + `]}`,
		"one long string": `{"const":"` + strings.Repeat("x", 60_000) + `"}`,
		"deep literal":    `{"const":` + wrapped(29, `[`, `1`, `]`) + `}`,
		"200 objects that look alike": `{"anyOf":[` + repeated(200, func(i int) string {
			return fmt.Sprintf(`{"properties":{"name":{"type":"string"},"id":{"type":"integer"},"k%d":{"type":"string"}},"required":["name","id","k%d"]}`, i, i)
		}) + `]}`,

		"great counts":          `{"type":"array","items":{"type":"string","minLength":1000000000,"maxLength":1000000001},"minItems":1000000000}`,
		"counts in one another": wrapped(28, `{"type":"array","minItems":2000,"items":`, `{"type":"integer"}`, `}`),
		"great number":          `{"maximum":1e999999999}`,
		"long numbers":          `{"minimum":-` + strings.Repeat("123456789", 40) + `.5,"maximum":` + strings.Repeat("987654321", 40) + `.25}`,
		"great divisor":         `{"type":"integer","multipleOf":9973}`,
		"divisors":              `{"allOf":[` + repeated(20, func(i int) string { return fmt.Sprintf(`{"multipleOf":%d}`, 2*i+3) }) + `]}`,
		"divisor and range":     `{"type":"number","multipleOf":0.0007,"minimum":-123456.7,"maximum":98765.4}`,
		"counted items":         `{"contains":{"type":"string"},"minContains":64,"maxContains":100,"maxItems":400}`,
		"unique items":          `{"type":"array","uniqueItems":true,"minItems":1000,"items":{"type":"array","uniqueItems":true,"items":{"type":"array","uniqueItems":true}}}`,
		"unique values":         `{"type":"array","uniqueItems":true,"minItems":10,"items":{"enum":[` + repeated(60, func(i int) string { return fmt.Sprint(i) }) + `]}}`,
		"unevaluated of many":   `{"anyOf":[` + repeated(60, func(i int) string { return fmt.Sprintf(`{"properties":{"p%d":{"type":"integer"}}}`, i) }) + `],"unevaluatedProperties":false}`,

		"deep":          wrapped(31, `{"items":`, `{"type":"integer"}`, `}`),
		"too deep":      wrapped(1_000_000, "[", "", "]"),
		"circle":        `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"nots":          wrapped(30, `{"not":`, `{"type":"string"}`, "}"),
		"not of many":   `{"not":{"properties":{` + properties(300, `{"type":"string"}`) + `}}}`,
		"chain of refs": `{"$ref":"#/$defs/a0","$defs":{` + repeated(1500, func(i int) string { return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, i+1) }) + `,"a1500":{"type":"integer"}}}`,
	}
}

// What a hostile schema may take, from its text to its first masks, of which the
// processor's time is checked with room for machines that are slow or in use.
const (
	hostileTime = 100 * time.Millisecond
	hostileRoom = 4
)

// TestHostile answers hostile schemas: by a grammar and the masks of a few
// tokens, or by an error that names the place. Work is bounded by counts.
func TestHostile(t *testing.T) {
	v := wideVocabulary()
	words := make([]uint64, v.Words())
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, schema := range hostileSchemas() {
		began := cpuTime()
		answer, stats := hostileAnswer(t, v, words, schema)
		took := cpuTime() - began
		t.Logf("%-30s %8.1f ms, %6d states, %6d configurations: %.150s", name, took.Seconds()*1e3, stats.States, stats.Configurations, answer)
		if took > hostileRoom*slower*hostileTime {
			t.Errorf("%s: took %v", name, took)
		}
		if most := (Limits{}).withDefaults().Memory; stats.Bytes > most {
			t.Errorf("%s: takes %d bytes", name, stats.Bytes)
		}
	}
}

// hostileAnswer compiles a schema and takes a few steps.
func hostileAnswer(t *testing.T, v *Vocabulary, words []uint64, schema string) (string, Stats) {
	g, err := grammar.FromSchema([]byte(schema), grammar.Options{Strict: true, Unique: true})
	if err != nil {
		if _, ok := errors.AsType[interface {
			error
			Pointer() string
		}](err); !ok {
			t.Errorf("%.100s: an error without a place: %v", schema, err)
		}
		return err.Error(), Stats{}
	}
	a, err := New(g, v, Limits{})
	if err != nil {
		if !errors.Is(err, ErrTooComplex) {
			t.Errorf("%.100s: %v", schema, err)
		}
		return err.Error(), a.Stats()
	}
	s := start(t, a, "")
	random := rand.New(rand.NewPCG(9, 9))
	for range 3 {
		n, err := s.Mask(words)
		if err != nil {
			if !errors.Is(err, ErrTooComplex) {
				t.Errorf("%.100s: %v", schema, err)
			}
			return err.Error(), a.Stats()
		}
		choices := appendBits(nil, words)
		if len(choices) != n || n == 0 {
			t.Fatalf("%.100s: %d tokens, said to be %d", schema, len(choices), n)
		}
		if token := choices[random.IntN(n)]; v.kinds[token] != End {
			if err := s.Accept(token); err != nil {
				t.Fatalf("%.100s: %v", schema, err)
			}
		}
	}
	return "a grammar", a.Stats()
}
