package grammar

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/b3os/b3infer/grammar/grammartest"
)

// An acceptorCase is a grammar as GBNF, with texts that the grammar has and texts
// that it does not have.
type acceptorCase struct {
	Name, GBNF        string
	Invalid           bool `json:",omitempty"` // ParseGBNF refuses it
	Loops             bool `json:",omitempty"` // it may repeat what may be empty, without end
	Admitted, Refused []string
}

// acceptorFile is what package libllama's tests give to llama.cpp, which must say
// the same of every text.
const acceptorFile = "acceptor.json.gz"

// TestAcceptorCases holds the file against what Match says today.
func TestAcceptorCases(t *testing.T) {
	a := acceptorCases{rand: rand.New(rand.NewPCG(1, 2)), longest: 2000}
	a.addSamples(t)
	a.addParsed(t)
	a.addSchemas(t)
	a.addCalls(t)
	a.longest = 20 // random grammars are ambiguous: llama.cpp keeps each way of reading a text
	a.addRandom(t)
	grammartest.HoldJSON(t, filepath.Join("testdata", "gbnf", acceptorFile), a.cases, *update)
}

type acceptorCases struct {
	longest int  // bytes of a text
	random  bool // grammars of which nothing is known
	rand    *rand.Rand
	cases   []acceptorCase
}

// add has texts of g: written ones, walks and near misses of all of them.
func (a *acceptorCases) add(name, gbnf string, g *Grammar, written ...string) {
	texts := slices.Clone(written)
	for seed := range uint64(10) {
		texts = append(texts, newWalker(g, seed, 20<<(seed%5)).text())
	}
	for _, text := range slices.Clone(texts) {
		for range 3 {
			texts = append(texts, nearMiss(a.rand, text))
		}
	}
	slices.Sort(texts)
	c := acceptorCase{Name: name, GBNF: gbnf, Loops: loops(g) || a.random}
	for _, text := range slices.Compact(texts) {
		switch {
		case strings.ContainsRune(text, 0) || len(text) > a.longest:
			// llama.cpp has no token of NUL.
		case g.Match([]byte(text)):
			c.Admitted = append(c.Admitted, text)
		default:
			c.Refused = append(c.Refused, text)
		}
	}
	a.cases = append(a.cases, c)
}

// loops tells whether what may be empty is repeated without end. No grammar of a
// schema does it.
func loops(g *Grammar) bool {
	nullable, found := g.Nullable(), false
	for _, r := range g.Rules {
		walk(r.Body, func(n Node) {
			r, ok := n.(Repeat)
			found = found || ok && r.Max == Unbounded && IsNullable(r.Body, nullable)
		})
	}
	return found
}

// addPrinted has the grammar as GBNF prints it, if that has a form for it.
func (a *acceptorCases) addPrinted(name string, g *Grammar, written ...string) bool {
	gbnf, err := g.GBNF()
	if err != nil {
		return false
	}
	a.add(name, gbnf, g, written...)
	return true
}

// addBoth has a text in GBNF as it is, and as it is printed.
func (a *acceptorCases) addBoth(t *testing.T, name, gbnf string, written []string) {
	g, err := ParseGBNF(gbnf)
	if err != nil {
		t.Fatal(err)
	}
	a.add(name, gbnf, g, written...)
	if !a.addPrinted(name+", printed", g, written...) {
		t.Errorf("%s cannot be printed", name)
	}
}

func (a *acceptorCases) addSamples(t *testing.T) {
	samples := sampleGrammars(t)
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		a.addBoth(t, name, samples[name], slices.Concat(sampleTexts[name].yes, sampleTexts[name].no))
	}
}

func (a *acceptorCases) addParsed(t *testing.T) {
	for i, test := range parseTexts {
		var written []string
		for _, text := range slices.Concat(test.yes, test.no) {
			if text == strings.ToValidUTF8(text, "") { // JSON holds no others
				written = append(written, text)
			}
		}
		a.addBoth(t, fmt.Sprint("parsed ", i), test.text, written)
	}
	for _, test := range parseErrors {
		// llama.cpp reads numbers out of order for ever.
		if strings.ToValidUTF8(test.text, "") == test.text && !strings.HasSuffix(test.text, "{3,2}") {
			a.cases = append(a.cases, acceptorCase{Name: test.want.Reason, GBNF: test.text, Invalid: true})
		}
	}
}

// addRandom has random grammars, some of them with slips.
func (a *acceptorCases) addRandom(t *testing.T) {
	for i := range 400 {
		w := gbnfWriter{rand: a.rand}
		text := w.grammar()
		g, err := ParseGBNF(text)
		var syntax *SyntaxError
		switch {
		case err == nil:
			a.random = true
			a.add(fmt.Sprint("random ", i), text, g)
			a.random = false
			a.addPrinted(fmt.Sprint("random ", i, ", printed"), g)
		case !errors.As(err, &syntax):
			t.Fatal(err)
		case strings.HasSuffix(syntax.Reason, "begins with itself"):
			// llama.cpp may miss it, and then take all memory.
		case strings.HasPrefix(syntax.Reason, "no text satisfies"):
			// llama.cpp takes it, and then no text.
		default:
			a.cases = append(a.cases, acceptorCase{Name: syntax.Reason, GBNF: text, Invalid: true})
		}
	}
}

// addSchemas has the schemas of golden files, and random ones with all keywords.
func (a *acceptorCases) addSchemas(t *testing.T) {
	files, err := filepath.Glob("testdata/gbnf/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema []byte
		var written []string
		for _, f := range archive.Files {
			switch f.Name {
			case "schema":
				schema = f.Data
			case "admitted", "refused":
				written = append(written, strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")...)
			}
		}
		if g, err := FromSchema(schema, Options{Strict: true}); err == nil {
			a.addPrinted(filepath.Base(file), g, written...)
		}
	}
	schemas := rapid.Custom(func(t *rapid.T) []byte { return schemaMaker{t}.document() })
	for seed, added := 0, 0; added < 150; seed++ {
		g, err := FromSchema(schemas.Example(seed), Options{Strict: true})
		if err == nil && a.addPrinted(fmt.Sprint("schema ", seed), g) {
			added++
		}
	}
}

// addCalls has the grammars of calls of each family of templates.
func (a *acceptorCases) addCalls(t *testing.T) {
	cases := envelopeCases(t)
	for _, template := range families {
		c := findEnvelope(t, cases, template, true, true, true)
		e, err := c.parse()
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.Grammar(c.callsOf()["required"])
		if err != nil {
			t.Fatal(err)
		}
		if !a.addPrinted(template, g) {
			t.Errorf("%s cannot be printed", template)
		}
	}
}

// nearMiss is a text that differs in one place.
func nearMiss(random *rand.Rand, text string) string {
	runes := []rune(text)
	at := random.IntN(len(runes) + 1)
	rest := runes[min(at+1, len(runes)):]
	other := []rune("ax09-., {}[]\"\\\n\x7fé\u2028漢\U0001F600")
	if len(runes) > 0 {
		other = append(other, runes...)
	}
	switch random.IntN(4) {
	case 0: // cut
		return string(runes[:at])
	case 1: // one less
		return string(runes[:at]) + string(rest)
	case 2: // one more
		return string(runes[:at]) + string(other[random.IntN(len(other))]) + string(runes[at:])
	}
	return string(runes[:at]) + string(other[random.IntN(len(other))]) + string(rest)
}

// A gbnfWriter writes random GBNF with the rules root, a and b-2, and slips.
type gbnfWriter struct {
	rand *rand.Rand
	out  strings.Builder
}

func (w *gbnfWriter) pick(from ...string) string { return from[w.rand.IntN(len(from))] }

// slip is seldom true.
func (w *gbnfWriter) slip() bool { return w.rand.IntN(80) == 0 }

func (w *gbnfWriter) grammar() string {
	for _, name := range []string{"root", "a", "b-2", "a"}[:3+w.rand.IntN(8)/7] {
		define := w.pick(" ::= ", "::=", "\t::=  ", " ::=\n ", " ::= # c\n", "::=\r\n")
		if w.slip() {
			define = w.pick(" : := ", "\n::= ", " := ", " :: = ")
		}
		w.out.WriteString(name + define)
		w.alternatives(3, false)
		w.out.WriteString(w.pick("\n", "\r\n", "\r", "\n\n# c\n", "\n", " # c\n", "\n \t"))
	}
	return w.out.String()
}

// space is what may stand behind an item: line ends only where brackets are open.
func (w *gbnfWriter) space(nested bool) {
	w.out.WriteString(w.pick(" ", " ", " ", "\t", "  "))
	if nested && w.rand.IntN(8) == 0 || w.slip() {
		w.out.WriteString(w.pick("\n", "\r\n ", "# c\n"))
	}
}

func (w *gbnfWriter) alternatives(depth int, nested bool) {
	for n := w.rand.IntN(3); ; n-- {
		items := w.rand.IntN(4)
		if items == 0 {
			w.out.WriteString(`"" `) // else the name of the next rule would be taken for it
		}
		for range items {
			w.item(depth, nested)
			w.space(nested)
		}
		if n <= 0 {
			return
		}
		w.out.WriteString("|" + w.pick("", " ", "\n"))
	}
}

func (w *gbnfWriter) item(depth int, nested bool) {
	switch n := w.rand.IntN(9); {
	case w.slip():
		w.out.WriteString(w.pick(`"\q"`, `"\x4"`, `"\ud8000`, `'a'`, "[ab", "c", "_", ")", "(", "{2}", "*", `""*`, "::="))
	case n < 3:
		w.out.WriteString(w.pick(`"a"`, `"ab"`, `"\x41"`, `"é"`, `"\u00e9"`, `"\n\t"`, `"\U0001F600"`, `"-]["`, `"\"\\"`, `"a'"`, "\"\n\""))
	case n < 5:
		w.out.WriteString(w.pick("[a-c]", "[^a]", `[^\n"]`, "[-a]", "[a-]", `[\]\-\[x]`, "[é-ü]", "[^é]", "[a^]", "[a-ce-g]", "[d-eb-d]", `[\x41-\x43]`, "[[]", "[a#b]", "[^^]"))
	case n == 5:
		w.out.WriteString(".")
	case n == 6 && depth > 0:
		w.out.WriteString("(" + w.pick("", " ", "\n"))
		w.alternatives(depth-1, true)
		w.out.WriteString(")")
	default:
		w.out.WriteString(w.pick("a", "b-2"))
	}
	for w.rand.IntN(3) == 0 {
		times := w.pick("*", "+", "?", "{2}", "{0,2}", "{1,}", "{ 1 , 3 }", " *", "{2, }", "{1,1}")
		if w.slip() {
			times = w.pick("{,2}", "{1;2}", "{}", "{2", "{-1}", "\n*")
		}
		w.out.WriteString(times)
	}
}
