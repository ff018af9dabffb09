package mask

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/grammar"
)

// A benchCase is a grammar and texts of it.
type benchCase struct {
	name    string
	compile func() (*grammar.Grammar, error)
	texts   []string
}

func schemaCase(name, schema string, texts ...string) benchCase {
	return benchCase{name, func() (*grammar.Grammar, error) {
		limits := grammar.Limits{Bytes: 1 << 20, Work: 20_000_000}
		return grammar.FromSchema([]byte(schema), grammar.Options{Strict: true, Limits: limits})
	}, texts}
}

const benchProse = `The quick brown fox, who had been waiting (since 1984!) near the river's edge, \"jumped\" over — naïve — 日本語 dogs; then it ran away at 12:45.\n`

func benchCases() []benchCase {
	long := strings.Repeat(benchProse, 40)
	return []benchCase{
		schemaCase("any JSON", `true`,
			`{"name":"Ada","tags":["a","bc",null,true],"size":{"w":12.5,"h":-3e10},"list":[1,2,3,[4,[5]]],"text":"`+benchProse+`"}`),
		schemaCase("4 string fields", `{"type":"object","properties":{"title":{"type":"string"},"author":{"type":"string"},"summary":{"type":"string"},"body":{"type":"string"}},"required":["title","author","summary","body"],"additionalProperties":false}`,
			`{"title":"A tale","author":"Jane Doe","summary":"`+benchProse+`","body":"`+benchProse+benchProse+`"}`),
		schemaCase("bounded strings", `{"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":20},"b":{"type":"string","maxLength":10000},"c":{"type":"string","minLength":5000,"maxLength":9000}},"required":["a","b","c"],"additionalProperties":false}`,
			`{"a":"Jane Doe","b":"`+benchProse+`","c":"`+long+`"}`),
		schemaCase("6 patterns and formats", `{"type":"object","properties":{"date":{"type":"string","format":"date-time"},"mail":{"type":"string","format":"email"},"id":{"type":"string","format":"uuid"},"slug":{"type":"string","pattern":"^[a-z0-9]+(-[a-z0-9]+)*$"},"version":{"type":"string","pattern":"^v\\d+\\.\\d+\\.\\d+$"},"host":{"type":"string","format":"hostname"}},"required":["date","mail","id","slug","version","host"],"additionalProperties":false}`,
			`{"date":"2024-02-29T12:30:59Z","mail":"jane.doe@example.com","id":"123e4567-e89b-12d3-a456-426614174000","slug":"a-quick-brown-fox-2","version":"v1.20.3","host":"www.example.org"}`),
		schemaCase("integers", `{"type":"array","items":{"type":"integer"}}`, integers(200)),
		schemaCase("100 to 5000 integers", `{"type":"array","items":{"type":"integer"},"minItems":100,"maxItems":5000}`, integers(200)),
		enumCase(1000),
		optionalCase("40 optional, open", 40, true),
		optionalCase("500 optional, closed", 500, false),
		schemaCase("recursive tree", `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},"label":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value","children"],"additionalProperties":false}}}`, tree(5)),
		nestedCase(),
		toolsCase(60),
		anyOrderCase(16),
		uniqueCase("200 unique strings", `{"type":"string"}`, func(i int) string {
			return fmt.Sprintf("%q", words(rand.New(rand.NewPCG(uint64(i), 7)), 2)+fmt.Sprint(i))
		}),
		uniqueCase("200 unique integers", `{"type":"integer"}`, func(i int) string { return fmt.Sprint(i * 7919 % 100_000) }),
		uniqueCase("200 unique objects", `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["id","name"],"additionalProperties":false}`, func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"item %d"}`, i, i*i) }),
	}
}

func integers(n int) string {
	random := rand.New(rand.NewPCG(1, 1))
	var out []int
	for range n {
		out = append(out, random.IntN(2_000_000)-500_000)
	}
	text, _ := json.Marshal(out)
	return string(text)
}

func tree(depth int) string {
	if depth == 0 {
		return `{"value":1,"children":[]}`
	}
	return fmt.Sprintf(`{"value":%d,"label":"node at %d","children":[%s,%s]}`, depth*37, depth, tree(depth-1), tree(depth-1))
}

var benchWords = strings.Fields(`account address amount balance category city code color comment company content country created currency customer date description discount email enabled end error event file first format group height host id image index item key kind label language last length level limit line link list location message method mode name number offset option order owner page parent path payment percent phone place port position price priority product query range rate reason region result role score service size source start state status street summary tag target text time title token total type unit updated url user value version weight width year zone`)

func words(random *rand.Rand, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = benchWords[random.IntN(len(benchWords))]
	}
	return strings.Join(out, "_")
}

func enumCase(n int) benchCase {
	random := rand.New(rand.NewPCG(2, 2))
	var values, texts []string
	for i := range n {
		value := fmt.Sprintf("%q", fmt.Sprintf("%s-%d", words(random, 2), i))
		values = append(values, value)
		if i%25 == 0 {
			texts = append(texts, value)
		}
	}
	return schemaCase(fmt.Sprintf("enum of %d", n), `{"enum":[`+strings.Join(values, ",")+`]}`, texts...)
}

// An object of many properties of mixed types, and a text with some of them.
func manyProperties(random *rand.Rand, n int) (properties, text string) {
	kinds := []string{`{"type":"string"}`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"type":"number"}`, `{"type":"array","items":{"type":"string"}}`, `{"enum":["low","medium","high"]}`}
	values := []string{`"some text, here"`, `1234`, `true`, `-12.75`, `["one","two"]`, `"medium"`}
	var props, members []string
	for i := range n {
		name := fmt.Sprintf("%s_%d", words(random, 1), i)
		props = append(props, fmt.Sprintf("%q:%s", name, kinds[i%len(kinds)]))
		if random.IntN(4) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, values[i%len(kinds)]))
		}
	}
	return strings.Join(props, ","), "{" + strings.Join(members, ",") + "}"
}

func optionalCase(name string, n int, open bool) benchCase {
	properties, text := manyProperties(rand.New(rand.NewPCG(3, 3)), n)
	schema := `{"type":"object","properties":{` + properties + `}`
	if open {
		text = strings.TrimSuffix(text, "}") + `,"another_key":[1,{"a":null}],"colour":"red"}`
	} else {
		schema += `,"additionalProperties":false`
	}
	return schemaCase(name, schema+"}", text)
}

// nestedCase is a schema of about 64 KiB.
func nestedCase() benchCase {
	random := rand.New(rand.NewPCG(4, 4))
	var object func(depth int) (schema, text string)
	object = func(depth int) (string, string) {
		var props, members, required []string
		for i := range 5 {
			name := fmt.Sprintf("%s_%d", words(random, 2), i)
			schema, text := `{"type":"string","maxLength":200}`, `"`+benchProse[:40]+`"`
			switch {
			case depth > 0 && i < 3:
				schema, text = object(depth - 1)
			case depth > 0 && i == 3:
				inner, one := object(depth - 2)
				schema, text = `{"type":"array","items":`+inner+`}`, "["+one+","+one+"]"
			case i == 1:
				schema, text = `{"type":"integer","minimum":0,"maximum":1000}`, "417"
			case i == 2:
				schema, text = `{"enum":["alpha","beta","gamma"]}`, `"beta"`
			}
			props = append(props, fmt.Sprintf(`%q:%s`, name, schema))
			if i%2 == 0 {
				required = append(required, fmt.Sprintf("%q", name))
			}
			if i%2 == 0 || random.IntN(2) == 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, text))
			}
		}
		return `{"type":"object","description":"An object of the kind that generated schemas are full of.","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `]}`,
			"{" + strings.Join(members, ",") + "}"
	}
	schema, text := object(4)
	return schemaCase(fmt.Sprintf("nested, %d KiB", len(schema)>>10), schema, text)
}

// toolsCase is calls of tools, of which one is large.
func toolsCase(n int) benchCase {
	random := rand.New(rand.NewPCG(5, 5))
	var calls, texts []string
	for i := range n {
		properties, arguments := manyProperties(random, 8+i%30)
		name := fmt.Sprintf("%s_%d", words(random, 2), i)
		calls = append(calls, fmt.Sprintf(`{"type":"object","properties":{"name":{"const":%q},"arguments":{"type":"object","properties":{%s},"additionalProperties":false}},"required":["name","arguments"],"additionalProperties":false}`, name, properties))
		if i%10 == 0 {
			texts = append(texts, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
		}
	}
	schema := `{"anyOf":[` + strings.Join(calls, ",") + `]}`
	return schemaCase(fmt.Sprintf("%d tools, %d KiB", n, len(schema)>>10), schema, texts...)
}

func anyOrderCase(n int) benchCase {
	bag := grammar.Bag{Sep: grammar.Literal(","), Max: grammar.Unbounded}
	var members []string
	for i := range n {
		key := fmt.Sprintf("%q:", benchWords[5*i])
		bag.Items = append(bag.Items, grammar.BagItem{Body: grammar.Seq{grammar.Literal(key), grammar.AnyString()}, Required: i%2 == 0})
		members = append(members, key+`"some value"`)
	}
	rand.New(rand.NewPCG(6, 6)).Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
	g := &grammar.Grammar{Rules: []grammar.Rule{{Name: "root", Body: grammar.Seq{grammar.Literal("{"), bag, grammar.Literal("}")}}}}
	return benchCase{fmt.Sprintf("%d keys in any order", n), func() (*grammar.Grammar, error) { return g, nil }, []string{"{" + strings.Join(members, ",") + "}"}}
}

func uniqueCase(name, item string, text func(int) string) benchCase {
	var items []string
	for i := range 200 {
		items = append(items, text(i))
	}
	return benchCase{name, func() (*grammar.Grammar, error) {
		return grammar.FromSchema([]byte(`{"type":"array","items":`+item+`,"uniqueItems":true}`), grammar.Options{Strict: true, Unique: true})
	}, []string{"[" + strings.Join(items, ",") + "]"}}
}

// longestToken is the longest token of a mask that a text begins with.
func longestToken(v *Vocabulary, byText map[string]int32, mask []uint64, text string) int32 {
	for n := min(len(text), v.longest); n > 0; n-- {
		if token, ok := byText[text[:n]]; ok && hasBit(mask, token) {
			return token
		}
	}
	return noToken
}

func textTokens(v *Vocabulary) map[string]int32 {
	out := map[string]int32{}
	for id := range int32(v.Len()) {
		if v.isText(id) {
			out[string(v.piece(id))] = id
		}
	}
	return out
}

// BenchmarkMasks measures masks of a new automaton (cold), and of the same texts
// again (warm), in microseconds, and the time to the first mask in milliseconds: all
// of the thread's own.
func BenchmarkMasks(b *testing.B) {
	for _, name := range []string{"qwen2", "gemma-4"} {
		b.Run(name, func(b *testing.B) {
			v := realVocabulary(b, name)
			byText := textTokens(v)
			for _, c := range benchCases() {
				b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) { benchMasks(b, v, byText, c) })
			}
		})
	}
}

func benchMasks(b *testing.B, v *Vocabulary, byText map[string]int32, c benchCase) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var m times
	var stats Stats
	words := make([]uint64, v.Words())
	for range b.N {
		stats = m.measure(b, v, byText, words, c)
	}
	m.report(b)
	b.ReportMetric(float64(stats.Bytes)/(1<<20), "MiB")
	b.ReportMetric(float64(stats.Configurations), "configs")
}

type times struct{ compile, first, cold, warm, accept []time.Duration }

// read goes through a text and measures each step.
func (m *times) read(b *testing.B, a *Automaton, words []uint64, byText map[string]int32, text string, warm bool) {
	s := start(b, a, "")
	for {
		began := cpuTime()
		if _, err := s.Mask(words); err != nil {
			b.Fatal(err)
		}
		took := cpuTime() - began
		if warm {
			m.warm = append(m.warm, took)
		} else {
			m.cold = append(m.cold, took)
		}
		if text == "" {
			break
		}
		token := longestToken(a.vocab, byText, words, text)
		if token == noToken {
			b.Fatalf("after %s: no token leads on to %.40q", spell(a.vocab, s.tokens()), text)
		}
		began = cpuTime()
		if err := s.Accept(token); err != nil {
			b.Fatal(err)
		}
		if warm {
			m.accept = append(m.accept, cpuTime()-began)
		}
		text = text[len(a.vocab.piece(token)):]
	}
	if !s.Done() {
		b.Fatal("the text is not complete")
	}
}

func mean(ts []time.Duration) float64 {
	var sum time.Duration
	for _, t := range ts {
		sum += t
	}
	return float64(sum) / float64(max(len(ts), 1))
}

func quantile(ts []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(ts))
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}

// BenchmarkRows measures the masks of a step of 32 sequences with grammars of
// their own, on one goroutine, in microseconds for all of them.
func BenchmarkRows(b *testing.B) {
	v := realVocabulary(b, "qwen2")
	byText, words := textTokens(v), make([]uint64, v.Words())
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const rows = 32
	var cold, warm, first []time.Duration
	for range b.N {
		var automata []*Automaton
		var texts []string
		cases := benchCases()
		for i := range rows {
			c := cases[i%len(cases)]
			g, err := c.compile()
			if err != nil {
				b.Fatal(err)
			}
			automata = append(automata, automaton(b, g, v, Limits{}))
			texts = append(texts, c.texts[i%len(c.texts)])
		}
		for _, steps := range []*[]time.Duration{&cold, &warm} {
			sequences, rests := make([]*Sequence, rows), slices.Clone(texts)
			for i, a := range automata {
				sequences[i] = start(b, a, "")
			}
			for step := range 40 {
				var took time.Duration
				for i, s := range sequences {
					began := cpuTime()
					if _, err := s.Mask(words); err != nil {
						b.Fatal(err)
					}
					took += cpuTime() - began
					if token := longestToken(v, byText, words, rests[i]); token != noToken {
						began = cpuTime()
						if err := s.Accept(token); err != nil {
							b.Fatal(err)
						}
						took += cpuTime() - began
						rests[i] = rests[i][len(v.piece(token)):]
					}
				}
				if step == 0 && steps == &cold {
					first = append(first, took)
				} else {
					*steps = append(*steps, took)
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mean(first)/1e3, "first-µs")
	b.ReportMetric(mean(cold)/1e3, "cold-µs")
	b.ReportMetric(quantile(cold, 0.99)/1e3, "cold-p99-µs")
	b.ReportMetric(mean(warm)/1e3, "warm-µs")
}

// BenchmarkVocabulary is the time to prepare a vocabulary of 152k tokens.
func BenchmarkVocabulary(b *testing.B) {
	v := realVocabulary(b, "qwen2")
	texts := make([][]byte, v.Len())
	for id := range texts {
		texts[id] = v.piece(int32(id))
	}
	b.ResetTimer()
	for range b.N {
		runtime.KeepAlive(NewVocabulary(texts, v.kinds))
	}
}
