package mask

import (
	"math/rand/v2"
	"testing"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/grammar/grammartest"
)

const notationSchema = `{"properties":{"city":{"type":"string","minLength":1,"maxLength":12},"tags":{"type":"array","minItems":2,"maxItems":4,"uniqueItems":true,` +
	`"items":{"type":"string","pattern":"^[a-z]{1,3}$"}},"items":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"sku":{"enum":["a","b"]},` +
	`"count":{"type":"integer","minimum":1,"maximum":99}},"required":["sku","count"],"additionalProperties":false}}},"required":["tags","city"],"additionalProperties":false}`

// TestNotationTokens calls a tool in Gemma's notation with Gemma's vocabulary, where
// the marks around strings are tokens: what is drawn is read as valid arguments, and
// strings stand between these tokens.
func TestNotationTokens(t *testing.T) {
	v := realVocabulary(t, "gemma-4")
	e := gemmaEnvelope(t)
	g, err := e.Grammar(grammar.Call{Mode: grammar.Required, Tools: []grammar.Tool{{Name: "get_weather", Strict: true, Schema: []byte(notationSchema)}}})
	if err != nil {
		t.Fatal(err)
	}
	validator, err := validatorOf(notationSchema)
	if err != nil {
		t.Fatal(err)
	}
	a := automaton(t, g, v, Limits{})
	mark, ok := v.mark(grammar.Token{Text: `<|"|>`})
	if !ok {
		t.Fatal("the vocabulary has no mark")
	}
	for seed := range uint64(40) {
		random, s := rand.New(rand.NewPCG(seed, 30)), start(t, a, "")
		text, marks := "", 0
		for !s.Done() {
			choices := appendBits(nil, maskOf(t, s))
			token := choices[random.IntN(len(choices))]
			if err := s.Accept(token); err != nil {
				t.Fatal(err)
			}
			if text += string(v.piece(token)); token == mark {
				marks++
			}
		}
		arguments := ""
		r := e.Read()
		for _, p := range append(r.Push(text), r.Close(false)...) {
			if p.Kind == grammar.CallArguments {
				arguments += p.Text
			}
		}
		if !isValidText(validator, arguments) {
			t.Errorf("%q is read as %s", text, arguments)
		}
		if marks < 6 || marks%2 > 0 {
			t.Errorf("%q has %d marks", text, marks)
		}
	}
}

// gemmaEnvelope is the form of answers of Gemma 4 that call a tool.
func gemmaEnvelope(t *testing.T) *grammar.Envelope {
	t.Helper()
	var cases []struct {
		Template                     string
		Required, Parallel, Thinking bool
		Envelope                     struct {
			Parser, Generation, Example string
			Preserved                   []string
		}
	}
	grammartest.ReadJSON(t, "../testdata/envelope/parsers.json.gz", &cases)
	for _, c := range cases {
		if c.Template != "google-gemma-4-31B-it" || !c.Required || c.Parallel || c.Thinking {
			continue
		}
		e, err := grammar.ParseEnvelope([]byte(c.Envelope.Parser), c.Envelope.Generation, c.Envelope.Preserved)
		if err != nil {
			t.Fatal(err)
		}
		e.Learn(c.Envelope.Example)
		return e
	}
	t.Fatal("no parser of Gemma 4")
	return nil
}
