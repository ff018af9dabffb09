package grammar

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/b3os/b3infer/grammar/grammartest"
)

// A told answer is the pieces of one, joined.
type toldAnswer struct {
	Content, Reasoning string
	Calls              []toldCall
	Rest               string // content behind the last call, or all of it
}

type toldCall struct {
	ID, Name, Arguments string
	Ended               bool
}

func (a *toldAnswer) take(t testing.TB, pieces []Piece) {
	t.Helper()
	for _, p := range pieces {
		if p.Kind >= CallArguments && p.Call != len(a.Calls)-1 || p.Kind == CallName && p.Call != len(a.Calls) {
			t.Fatalf("piece %+v behind %d calls", p, len(a.Calls))
		}
		if p.Kind != CallEnd && p.Text == "" {
			t.Fatalf("empty piece %+v", p)
		}
		switch p.Kind {
		case Content:
			a.Content += p.Text
			a.Rest += p.Text
		case Reasoning:
			a.Reasoning += p.Text
		case CallName:
			a.Calls = append(a.Calls, toldCall{ID: p.ID, Name: p.Text})
			a.Rest = ""
		case CallArguments:
			a.Calls[p.Call].Arguments += p.Text
		case CallEnd:
			a.Calls[p.Call].Ended = true
			a.Calls[p.Call].ID += p.ID
		}
	}
}

// read reads an answer in pushes of the sizes that next gives.
func read(t testing.TB, e *Envelope, text string, whole bool, next func() int) toldAnswer {
	t.Helper()
	r := e.Read()
	r.Whole = whole
	var a toldAnswer
	for text != "" {
		n := min(next(), len(text))
		a.take(t, r.Push(text[:n]))
		text = text[n:]
	}
	a.take(t, r.Close(true))
	if more := append(r.Push("x"), r.Close(true)...); more != nil {
		t.Fatalf("%+v behind the end", more)
	}
	return a
}

func readAll(t testing.TB, e *Envelope, text string, whole bool) toldAnswer {
	return read(t, e, text, whole, func() int { return len(text) })
}

// A commonReading is what common/chat reads in an answer. Package libllama's tests
// write the file.
type commonReading struct {
	Case               int
	Kind, Text         string
	Failed             bool
	Content, Reasoning string
	Calls              []toldCall
}

// envelopeReadings is what common/chat reads, and the envelopes of the cases.
func envelopeReadings(t testing.TB) ([]commonReading, []envelopeCase, []*Envelope) {
	t.Helper()
	var readings []commonReading
	grammartest.ReadJSON(t, filepath.Join("testdata", "envelope", "readings.json.gz"), &readings)
	cases := envelopeCases(t)
	envelopes := make([]*Envelope, len(cases))
	for _, r := range readings {
		if envelopes[r.Case] == nil {
			e, err := cases[r.Case].parse()
			if err != nil {
				t.Fatal(err)
			}
			envelopes[r.Case] = e
		}
	}
	return readings, cases, envelopes
}

// TestReaderAgainstCommonChat reads answers of all templates, also cut, changed and
// among other text, as common/chat does.
func TestReaderAgainstCommonChat(t *testing.T) {
	readings, cases, envelopes := envelopeReadings(t)
	if len(readings) < 8000 {
		t.Fatalf("only %d answers", len(readings))
	}
	for _, want := range readings {
		e := envelopes[want.Case]
		for _, whole := range []bool{true, false} {
			r := e.Read()
			r.Whole = whole
			var got toldAnswer
			got.take(t, r.Push(want.Text))
			got.take(t, r.Close(true))
			if why := want.differs(r, got, e.peg.marks()); why != "" {
				t.Errorf("%s, whole %v, %s: %q: %s:\n got %+v\nwant %+v", cases[want.Case].Template, whole, want.Kind, want.Text, why, got, want)
			}
		}
	}
}

// A call that the model has ended too early is text, if nothing was told of it.
func TestReaderTellsNoHalfCalls(t *testing.T) {
	readings, cases, envelopes := envelopeReadings(t)
	for _, answer := range readings {
		r := envelopes[answer.Case].Read()
		r.Whole = true
		open := 0
		for _, p := range append(r.Push(answer.Text), r.Close(false)...) {
			switch p.Kind {
			case CallName:
				open++
			case CallEnd:
				open--
			}
		}
		if open != 0 {
			t.Errorf("%s: %q: %d calls are not complete", cases[answer.Case].Template, answer.Text, open)
		}
	}
}

// differs says in what a told answer differs from what common/chat reads, other than
// this: the generation prompt is not told again; text that common/chat leaves out,
// since it does not read it or takes it for the beginning of a mark at the end, is
// content or reasoning; of a cut call is told what has come.
func (want *commonReading) differs(r *Reader, got toldAnswer, marks []string) string {
	if want.Failed {
		last := got.Rest[strings.LastIndexAny(got.Rest, "<[\n")+1:] // a mark may be missing in front
		if r.state != plain || got.Rest == "" || !strings.HasSuffix(want.Text, last) || r.told != len(r.text) {
			return "the rest is not content"
		}
		return ""
	}
	if r.state == plain && (!r.Whole || len(want.Calls) == 0) && len(got.Calls) > 0 {
		// Calls were told of a section that common/chat takes back as a whole.
		if strings.HasSuffix(want.Text, got.Rest) && r.told == len(r.text) {
			return ""
		}
		return "the rest of a section is not content"
	}
	generation := string(r.text[:len(r.text)-len(want.Text)])
	same := func(got, part string) bool {
		rest, ok := strings.CutPrefix(got, part)
		held := slices.ContainsFunc(marks, func(m string) bool { return len(rest) < len(m) && strings.HasPrefix(m, rest) })
		begun := r.Whole && r.state == cut && r.inCall()
		return ok && strings.HasSuffix(want.Text, rest) && (rest == "" || held || begun || r.state == plain && !slices.Contains(marks, ""))
	}
	behindPrompt := func(got, want string) bool {
		for i := range want {
			if strings.HasSuffix(generation, want[:i]) && same(got, want[i:]) {
				return true
			}
		}
		return same(got, "") && strings.HasSuffix(generation, want)
	}
	reasoning := got.Reasoning
	if want.Reasoning == "" {
		reasoning = strings.TrimLeft(reasoning, blanks) // of blanks alone it was none
	}
	switch {
	case !behindPrompt(reasoning, want.Reasoning):
		return "reasoning"
	case !behindPrompt(got.Content, want.Content):
		return "content"
	}
	return want.callsDiffer(r, got.Calls)
}

// marks are the texts that end other texts, and the empty one if the whole answer
// is read.
func (p *peg) marks() []string {
	var out []string
	for i := range p.Parsers {
		switch n := &p.Parsers[i]; n.Type {
		case "until":
			out = append(out, n.Delimiters...)
		case "literal":
			if n.Literal != "" {
				out = append(out, n.Literal)
			}
		case "end":
			out = append(out, "")
		}
	}
	return out
}

func (want *commonReading) callsDiffer(r *Reader, got []toldCall) string {
	for i, c := range got {
		if i == len(got)-1 && !c.Ended {
			if r.state != cut || want.Kind == "whole" {
				return "a call without end"
			}
			break
		}
		c.Ended = false
		if i >= len(want.Calls) || c != want.Calls[i] {
			return "calls"
		}
	}
	if n := len(got); n < len(want.Calls) {
		if r.state == cut && n+1 == len(want.Calls) && strings.HasSuffix(want.Text, want.Calls[n].Name) {
			return "" // the name may have gone on
		}
		return "fewer calls"
	}
	if len(want.Calls) > 0 && len(got) == len(want.Calls) {
		c, w := got[len(got)-1], want.Calls[len(got)-1]
		if c.Ended {
			return ""
		}
		args := func(c toldCall) string { return strings.TrimPrefix(strings.TrimRight(c.Arguments, blanks), "{") }
		if c.Name != w.Name || c.ID != w.ID || !strings.HasPrefix(args(w), args(c)) || len(args(w))-len(args(c)) > 16 {
			return "a cut call"
		}
	}
	return ""
}

// TestReaderPushes: how an answer is divided changes nothing.
func TestReaderPushes(t *testing.T) {
	readings, cases, envelopes := envelopeReadings(t)
	random := rand.New(rand.NewPCG(3, 4))
	for i, a := range readings {
		e, whole := envelopes[a.Case], i/2%2 == 0
		want := readAll(t, e, a.Text, whole)
		check := func(way string, next func() int) {
			if got := read(t, e, a.Text, whole, next); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, whole %v, %s: %q:\n got %+v\nwant %+v", cases[a.Case].Template, whole, way, a.Text, got, want)
			}
		}
		check("bytes", func() int { return 1 })
		check("at random", func() int { return 1 + random.IntN(12) })
		if i%97 == 0 {
			for at := 1; at < len(a.Text); at++ {
				sizes := []int{at, len(a.Text)}
				check(fmt.Sprint("at ", at), func() int {
					size := sizes[0]
					sizes = sizes[1:]
					return size
				})
			}
		}
	}
}
