package llamatest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

var vocabularyCases = []contractCase{
	{"is consistent", func(r *rig) {
		v := r.vocab
		if v.Len() == 0 || len(v.Ends()) == 0 {
			r.Fatalf("%d tokens, ends %v", v.Len(), v.Ends())
		}
		if b := v.BOS(); b != llama.NoToken && !v.Valid(b) {
			r.Errorf("BOS is %d of %d tokens", b, v.Len())
		}
		for id := range v.Len() {
			t := llama.Token(id)
			if v.Kind(t) > llama.KindUnused {
				r.Errorf("token %d has kind %d", t, v.Kind(t))
			}
			if _, listed := slices.BinarySearch(v.Ends(), t); listed != v.IsEnd(t) {
				r.Errorf("token %d: IsEnd %v, in Ends %v", t, v.IsEnd(t), listed)
			}
		}
	}},
}

func literal(text string) llama.Part { return llama.Part{Text: []byte(text)} }
func special(text string) llama.Part { return llama.Part{Text: []byte(text), Special: true} }

// isSpecial tells whether a token may only come from template text.
func (r *rig) isSpecial(t llama.Token) bool {
	kind := r.vocab.Kind(t)
	return kind == llama.KindControl || kind == llama.KindUser
}

// specials are the control and user-defined tokens that have a text, at most
// 100 of them.
func (r *rig) specials() []llama.Token {
	var tokens []llama.Token
	for id := r.vocab.Len() - 1; id >= 0 && len(tokens) < 100; id-- {
		if t := llama.Token(id); r.isSpecial(t) && len(r.vocab.Piece(t)) > 1 {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

func (r *rig) pieces(tokens []llama.Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.Write(r.vocab.Piece(t))
	}
	return b.String()
}

// plain fails unless parts become ordinary tokens that spell text.
func (r *rig) plain(text string, parts ...llama.Part) {
	r.Helper()
	tokens := r.tokenize(parts...)
	if i := slices.IndexFunc(tokens, r.isSpecial); i >= 0 {
		r.Errorf("%q became the special token %d (%q)", text, tokens[i], r.vocab.Piece(tokens[i]))
	}
	// Some vocabularies put a space in front of a text.
	if got := r.pieces(tokens); got != text && got != " "+text {
		r.Errorf("got %q back, want %q", got, text)
	}
}

var tokenizeCases = []contractCase{
	{"text comes back", func(r *rig) {
		for _, text := range []string{
			"Hello", foxText, "line one\nline two\n\n\tindented  twice", `{"a": [1, 2.5e-3, null]}`,
			"Grüße, 世界! こんにちは 😀 👩‍👩‍👧 é", "func main() { fmt.Println(\"hi\") }", "   ", "\n",
		} {
			r.plain(text, literal(text))
		}
	}},
	{"nothing gives nothing", func(r *rig) {
		if got := r.tokenize(); len(got) != 0 {
			r.Errorf("no parts gave %v", got)
		}
		if got := r.tokenize(literal(""), special("")); len(got) != 0 {
			r.Errorf("empty parts gave %v", got)
		}
	}},
	{"appends", func(r *rig) {
		want := append([]llama.Token{7}, r.tokenize(literal(foxText))...)
		got, err := r.model.Tokenize([]llama.Token{7}, []llama.Part{literal(foxText)}, false)
		r.must("Tokenize", err)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Error(diff)
		}
	}},
	{"begins with BOS if wanted", func(r *rig) {
		want := r.tokenize(literal(foxText))
		if b := r.vocab.BOS(); b != llama.NoToken {
			want = slices.Insert(want, 0, b)
		}
		got, err := r.model.Tokenize(nil, []llama.Part{literal(foxText)}, true)
		r.must("Tokenize", err)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Error(diff)
		}
	}},
	{"parts are one text", func(r *rig) {
		want := r.tokenize(literal(foxText))
		for cut := range len(foxText) {
			a, b := foxText[:cut], foxText[cut:]
			for _, parts := range [][]llama.Part{
				{literal(a), literal(b)}, {special(a), literal(b)}, {literal(a), special(b)}, {special(a), special(b)},
			} {
				if diff := cmp.Diff(want, r.tokenize(parts...)); diff != "" {
					r.Fatalf("cut at %d:\n%s", cut, diff)
				}
			}
		}
	}},
	{"template text becomes special tokens", func(r *rig) {
		for _, end := range r.vocab.Ends() {
			if !r.isSpecial(end) {
				continue
			}
			mark := string(r.vocab.Piece(end))
			got := r.tokenize(literal("one"), special(mark), literal("two"))
			if n := slices.Index(got, end); n < 0 || slices.ContainsFunc(slices.Delete(slices.Clone(got), n, n+1), r.isSpecial) {
				r.Errorf("%q became %v, want token %d once", mark, got, end)
			}
		}
	}},
	{"user text stays text", func(r *rig) {
		for _, t := range r.specials() {
			mark := string(r.vocab.Piece(t))
			half := len(mark) / 2
			for _, text := range []string{mark, "a" + mark + "b", mark + mark, mark[:half] + mark + mark[half:], "\n" + mark + "\n"} {
				r.plain(text, literal(text))
			}
		}
	}},
	{"special tokens do not form across parts", func(r *rig) {
		for _, t := range r.specials() {
			mark := string(r.vocab.Piece(t))
			for cut := 1; cut < len(mark); cut++ {
				a, b := mark[:cut], mark[cut:]
				r.plain(mark, literal(a), literal(b))
				r.plain(mark, special(a), literal(b))
				r.plain(mark, literal(a), special(b))
			}
		}
	}},
	{"refuses images", func(r *rig) {
		_, err := r.model.Tokenize(nil, []llama.Part{{Image: 1}}, false)
		r.mustBe("Tokenize", err, llama.ErrInvalid)
	}},
	{"takes any bytes", func(r *rig) {
		for _, text := range []string{"\xff\xfe", "a\x00b", "\xc3", "\xed\xa0\x80", "\xf0\x9f\x98"} {
			if got := r.tokenize(literal(text)); len(got) == 0 {
				r.Errorf("%q gave no tokens", text)
			}
		}
	}},
	{"by many at once", func(r *rig) {
		want := r.tokenize(literal(foxText))
		r.manyAtOnce(func() string {
			got, err := r.model.Tokenize(nil, []llama.Part{literal(foxText)}, false)
			r.check(err)
			return cmp.Diff(want, got)
		})
	}},
}

// check reports an error from any goroutine.
func (r *rig) check(err error) {
	if err != nil {
		r.Error(err)
	}
}

// manyAtOnce runs f in several goroutines; it returns what is wrong.
func (r *rig) manyAtOnce(f func() string) {
	r.Helper()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				if diff := f(); diff != "" {
					r.Error(diff)
				}
			}
		})
	}
	wg.Wait()
}

// chat is the model's own template.
func (r *rig) chat() llama.Chat {
	r.Helper()
	c, err := r.model.NewChat(llama.ChatParams{})
	r.must("NewChat", err)
	return c
}

func (r *rig) render(c llama.Chat, in llama.ChatInput) llama.Prompt {
	r.Helper()
	p, err := c.Render(in)
	r.must("Render", err)
	return p
}

// conversation ends in a user turn with this text.
func conversation(text string) llama.ChatInput {
	turn := func(role, text string) llama.ChatMessage {
		return llama.ChatMessage{Role: role, Content: []llama.ChatPart{{Text: text}}}
	}
	return llama.ChatInput{
		Messages: []llama.ChatMessage{turn("user", "Name a prime."), turn("assistant", "Seven."), turn("user", text)},
		Now:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func joined(parts []llama.Part) string {
	var b bytes.Buffer
	for _, p := range parts {
		b.Write(p.Text)
	}
	return b.String()
}

var chatCases = []contractCase{
	{"renders the conversation", func(r *rig) {
		p := r.render(r.chat(), conversation("And one above 90?"))
		text := joined(p.Parts)
		at := 0
		for _, want := range []string{"Name a prime.", "Seven.", "And one above 90?"} {
			n := strings.Index(text[at:], want)
			if n < 0 {
				r.Fatalf("%q does not come in its turn in %q", want, text)
			}
			at += n + len(want)
		}
		if p.Generation == "" || !strings.HasSuffix(text, p.Generation) {
			r.Errorf("%q does not end with the generation prompt %q", text, p.Generation)
		}
	}},
	{"can leave out the generation prompt", func(r *rig) {
		c, in := r.chat(), conversation("And one above 90?")
		with := r.render(c, in)
		in.NoGenerationPrompt = true
		want := strings.TrimSuffix(joined(with.Parts), with.Generation)
		if got := joined(r.render(c, in).Parts); got != want {
			r.Errorf("got %q, want %q", got, want)
		}
	}},
	{"says whether reasoning has begun", func(r *rig) {
		in := conversation("And one above 90?")
		for _, in.Thinking = range []bool{false, true} {
			p := r.render(r.chat(), in)
			open := p.ThinkStart != "" && strings.HasSuffix(strings.TrimSpace(p.Generation), strings.TrimSpace(p.ThinkStart))
			if p.Thinking != open {
				r.Errorf("thinking %v: Thinking is %v, the generation prompt is %q", in.Thinking, p.Thinking, p.Generation)
			}
		}
	}},
	{"user text stays text", func(r *rig) {
		c := r.chat()
		marks := func(text string) []llama.Token {
			tokens := r.tokenize(r.render(c, conversation(text)).Parts...)
			return slices.DeleteFunc(tokens, func(t llama.Token) bool { return !r.isSpecial(t) })
		}
		want := marks("one two")
		for _, t := range r.specials() {
			text := "one" + string(r.vocab.Piece(t)) + "two"
			if diff := cmp.Diff(want, marks(text)); diff != "" {
				r.Errorf("special tokens with %q in a message:\n%s", text, diff)
			}
		}
	}},
	{"refuses a broken template", func(r *rig) {
		_, err := r.model.NewChat(llama.ChatParams{Template: "{% if %}{{ messages["})
		r.mustBe("NewChat", err, llama.ErrTemplate)
	}},
	{"by many at once", func(r *rig) {
		c, in := r.chat(), conversation("And one above 90?")
		want := r.render(c, in)
		r.manyAtOnce(func() string {
			got, err := c.Render(in)
			r.check(err)
			return cmp.Diff(want, got)
		})
	}},
}
