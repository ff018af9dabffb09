package llamatest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
)

const text = "The people said that they would go down to the water in the time of the day."

func TestTrueOutput(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		for _, p := range []llama.Sampling{{TopP: 1}, {Temperature: 1, TopP: 1}, {Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}} {
			t.Run(fmt.Sprint(hybrid, p), func(t *testing.T) {
				d := newDriver(t, llamatest.Options{Hybrid: hybrid})
				prompt := d.tokens(text)
				want := d.model.TrueOutput(prompt, 50, p, 7)
				if diff := cmp.Diff(want, d.answer(2, prompt, 50, p, 7)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestTrueOutputCounts(t *testing.T) {
	d := newDriver(t, llamatest.Options{MeanAnswer: -1})
	prompt := d.tokens(text)
	got := d.model.TrueOutput(prompt, 300, llama.Sampling{TopP: 1, Presence: 500}, 0)
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 300 {
		t.Errorf("of 300 tokens under a presence penalty %d are different", n)
	}
	ban := llama.TokenBias{Token: d.model.TrueOutput(prompt, 1, llama.Sampling{TopP: 1}, 0)[0], Bias: -50}
	if got := d.model.TrueOutput(prompt, 1, llama.Sampling{TopP: 1}, 0, ban); got[0] == ban.Token {
		t.Errorf("token %d came in spite of its bias", ban.Token)
	}
}

func TestAnswersEnd(t *testing.T) {
	for _, mean := range []int{4, 64} {
		model := llamatest.New(llamatest.Options{MeanAnswer: mean})
		total, n := 0, 400
		for i := range n {
			answer := model.TrueOutput([]llama.Token{llama.Token(i % 256), llama.Token(i / 256)}, 10000, llama.Sampling{TopP: 1}, 0)
			if !model.Vocab().IsEnd(answer[len(answer)-1]) {
				t.Fatalf("answer %d has no end", i)
			}
			total += len(answer)
		}
		if got := float64(total) / float64(n); got < 0.7*float64(mean) || got > 1.8*float64(mean) {
			t.Errorf("answers are %.1f tokens long on average, want about %d", got, mean)
		}
	}
}

func TestAnswersAreText(t *testing.T) {
	d := newDriver(t, llamatest.Options{MeanAnswer: -1})
	runes := 0
	for seed := range uint64(20) {
		answer := d.text(d.model.TrueOutput(d.tokens(text), 200, llama.Sampling{Temperature: 1, TopP: 1}, seed))
		for i, r := range answer {
			if r == utf8.RuneError && i < len(answer)-3 {
				t.Fatalf("seed %d: byte %d of %q is no text", seed, i, answer)
			}
			if r >= utf8.RuneSelf {
				runes++
			}
		}
	}
	if runes < 100 {
		t.Errorf("only %d characters take several bytes", runes)
	}
}

// TestMistakes makes the mistakes of a bad scheduler. Each must show: as an
// error, or as another token than the true one after the tokens of text.
func TestMistakes(t *testing.T) {
	type mistake struct {
		name string
		make func(d *driver, prompt []llama.Token) error // fills sequence 1 with prompt but for its last token
	}
	plain := []mistake{
		{"a wrong token", func(d *driver, prompt []llama.Token) error {
			prompt[3] = 'x'
			return d.feed(1, prompt...)
		}},
		{"two tokens swapped", func(d *driver, prompt []llama.Token) error {
			prompt[3], prompt[4] = prompt[4], prompt[3]
			return d.feed(1, prompt...)
		}},
		{"a token left out", func(d *driver, prompt []llama.Token) error {
			return d.feed(1, slices.Delete(prompt, 3, 4)...)
		}},
		{"a token twice", func(d *driver, prompt []llama.Token) error {
			return d.feed(1, slices.Insert(prompt, 3, prompt[3])...)
		}},
		{"another sequence's cells", func(d *driver, prompt []llama.Token) error {
			return errors.Join(d.feed(2, d.tokens("When they came to the")...), d.ctx.SeqCopy(2, 1, -1, -1), d.feed(1, prompt[7:]...))
		}},
		{"cells computed behind another prefix", func(d *driver, prompt []llama.Token) error {
			other := slices.Clone(prompt)
			other[0] = 'x'
			return errors.Join(d.feed(2, other...), d.feed(1, prompt[:4]...), d.ctx.SeqCopy(2, 1, 4, -1))
		}},
		{"a hole", func(d *driver, prompt []llama.Token) error {
			return errors.Join(d.feed(1, prompt...), d.ctx.SeqRemove(1, 3, 5))
		}},
		{"no beginning", func(d *driver, prompt []llama.Token) error {
			return errors.Join(d.feed(2, prompt...), d.ctx.SeqCopy(2, 1, 3, -1))
		}},
		{"the end cut off", func(d *driver, prompt []llama.Token) error {
			return errors.Join(d.feed(1, prompt...), d.ctx.SeqRemove(1, llama.Pos(len(prompt)-1), -1))
		}},
		{"not emptied before", func(d *driver, prompt []llama.Token) error {
			return errors.Join(d.feed(1, 'x', 'y'), d.feed(1, prompt...))
		}},
		{"nothing", func(d *driver, prompt []llama.Token) error { return d.feed(1, prompt...) }},
	}
	hybrid := []mistake{
		plain[0], plain[1], plain[2], plain[3], plain[4], plain[9], plain[10],
		{"stale cells behind a restored state", func(d *driver, prompt []llama.Token) error {
			state := make([]byte, 1024)
			err := d.feed(1, prompt[:4]...)
			_, saved := d.ctx.StateSave(1, state, true)
			return errors.Join(err, saved, d.feed(1, prompt[4:]...), d.ctx.StateLoad(1, state, true))
		}},
		{"the state of other tokens", func(d *driver, prompt []llama.Token) error {
			state := make([]byte, 1024)
			err := d.feed(2, slices.Repeat([]llama.Token{'x'}, len(prompt))...)
			_, saved := d.ctx.StateSave(2, state, true)
			return errors.Join(err, saved, d.feed(1, prompt...), d.ctx.StateLoad(1, state, true))
		}},
	}
	for kind, mistakes := range map[string][]mistake{"plain": plain, "hybrid": hybrid} {
		for _, m := range mistakes {
			t.Run(kind+"/"+m.name, func(t *testing.T) {
				d := newDriver(t, llamatest.Options{Hybrid: kind == "hybrid"})
				prompt := d.tokens(text)
				last := len(prompt) - 1
				want := d.model.TrueOutput(prompt, 1, llama.Sampling{TopP: 1}, 0)[0]
				err := m.make(d, slices.Clone(prompt[:last]))
				if err == nil {
					err = d.feed(1, prompt[last])
				}
				shows := err != nil || d.sample(0, llama.Sampling{TopP: 1}, 0, 0) != want
				if shows == (m.name == "nothing") {
					t.Errorf("shows: %v, error: %v", shows, err)
				}
			})
		}
	}
}

// TestRandomOperations copies, cuts, extends and removes sequences at random.
// What comes after a sequence is always the true output of its tokens.
func TestRandomOperations(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		for seed := range uint64(30) {
			r := rand.New(rand.NewPCG(seed, 0))
			d := newDriver(t, llamatest.Options{Hybrid: hybrid})
			var books [6][]llama.Token
			for range 60 {
				s, dst := r.IntN(6), r.IntN(6)
				switch r.IntN(5) {
				case 0:
					if len(books[dst]) > 0 || s == dst {
						continue
					}
					n := len(books[s])
					if !hybrid && n > 0 {
						n = 1 + r.IntN(n)
					}
					d.check(d.ctx.SeqCopy(llama.SeqID(s), llama.SeqID(dst), 0, llama.Pos(n)))
					books[dst] = slices.Clone(books[s][:n])
				case 1:
					n := 0
					if !hybrid && len(books[s]) > 0 {
						n = r.IntN(len(books[s]))
					}
					d.check(d.ctx.SeqRemove(llama.SeqID(s), llama.Pos(n), -1))
					books[s] = books[s][:n]
				default:
					add := make([]llama.Token, 1+r.IntN(9))
					for i := range add {
						add[i] = llama.Token(r.IntN(300))
					}
					err := d.feed(llama.SeqID(s), add...)
					if errors.Is(err, llama.ErrNoKVSpace) {
						continue
					}
					d.check(err)
					books[s] = append(books[s], add...)
					got := d.sample(len(add)-1, llama.Sampling{TopP: 1}, 0, 0)
					if want := d.model.TrueOutput(books[s], 1, llama.Sampling{TopP: 1}, 0)[0]; got != want {
						t.Fatalf("seed %d: got %d, want %d", seed, got, want)
					}
				}
			}
			for s := range books {
				if diff := cmp.Diff(books[s], d.ctx.Tokens(llama.SeqID(s))); diff != "" && len(books[s]) > 0 {
					t.Errorf("seed %d: sequence %d:\n%s", seed, s, diff)
				}
				d.check(d.ctx.SeqRemove(llama.SeqID(s), -1, -1))
			}
			if d.ctx.AssertEmpty(t); d.ctx.UsedCells() != 0 {
				t.Errorf("seed %d: %d cells are left", seed, d.ctx.UsedCells())
			}
		}
	}
}

func (d *driver) check(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// failures counts what a test would report.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestAssertEmpty(t *testing.T) {
	d := newDriver(t, llamatest.Options{})
	d.check(d.feed(4, d.tokens(text)...))
	d.check(d.ctx.SeqCopy(4, 1, 0, 3))
	d.check(d.ctx.SeqRemove(4, -1, -1))
	if got := d.ctx.UsedCells(); got != 3 {
		t.Errorf("%d cells are used, want 3", got)
	}
	if diff := cmp.Diff([]llama.SeqID{1}, d.ctx.UsedSequences()); diff != "" {
		t.Error(diff)
	}
	var leak failures
	if d.ctx.AssertEmpty(&leak); leak.n != 1 {
		t.Errorf("a leaked sequence was reported %d times", leak.n)
	}
}

func TestCloseWithOpenContexts(t *testing.T) {
	d := newDriver(t, llamatest.Options{})
	if err := d.model.Close(); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("got %v while a context was open", err)
	}
	if got := d.model.Contexts(); len(got) != 1 || got[0] != d.ctx {
		t.Errorf("open contexts: %v", got)
	}
	d.check(d.ctx.Close())
	d.check(d.model.Close())
}

func TestTwoGoroutines(t *testing.T) {
	inside, leave := make(chan bool), make(chan bool)
	d := newDriver(t, llamatest.Options{OnDecode: func(*llama.Batch) error {
		close(inside)
		<-leave
		return nil
	}})
	done := make(chan error)
	go func() { done <- d.feed(0, 'a') }()
	<-inside
	func() {
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, "two goroutines") {
				t.Errorf("panicked with %s", got)
			}
		}()
		d.ctx.SeqRange(0)
	}()
	if got := d.ctx.UsedCells(); got != 0 { // the books may be read
		t.Errorf("%d cells are used", got)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOnDecode(t *testing.T) {
	var rows []int
	d := newDriver(t, llamatest.Options{OnDecode: func(b *llama.Batch) error {
		rows = append(rows, b.Len())
		return nil
	}})
	d.check(d.feed(0, d.tokens(text)[:10]...))
	var bad llama.Batch
	if d.ctx.Decode(&bad) == nil {
		t.Error("an empty batch was taken")
	}
	d.check(d.feed(0, 'a'))
	if diff := cmp.Diff([]int{10, 1}, rows); diff != "" {
		t.Errorf("rows of valid batches:\n%s", diff)
	}
}

func TestFailAt(t *testing.T) {
	other := errors.New("lights out")
	for _, want := range []error{llama.ErrNoKVSpace, other} {
		d := newDriver(t, llamatest.Options{OnDecode: llamatest.FailAt(2, want)})
		d.check(d.feed(0, 'a', 'b'))
		if err := d.feed(0, 'c'); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if diff := cmp.Diff([]llama.Token{'a', 'b'}, d.ctx.Tokens(0)); diff != "" {
			t.Errorf("after %v:\n%s", want, diff)
		}
		if got, want := d.next(0, 'c'), d.model.TrueOutput([]llama.Token{'a', 'b', 'c'}, 1, llama.Sampling{TopP: 1}, 0)[0]; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

func TestFault(t *testing.T) {
	tests := []struct {
		name   string
		hybrid bool
		row    int
		lost   []llama.SeqID
		held   [3]int // rows that sequences 0 to 2 hold after it
	}{
		{"first ubatch", false, 0, []llama.SeqID{0, 1}, [3]int{1, 1, 1}},
		{"second ubatch", false, 5, []llama.SeqID{1}, [3]int{5, 1, 1}},
		{"last ubatch", false, 9, []llama.SeqID{1}, [3]int{5, 5, 1}},
		{"hybrid", true, 9, []llama.SeqID{0, 1}, [3]int{5, 5, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDriver(t, llamatest.Options{Hybrid: tt.hybrid, OnDecode: llamatest.FailAt(4, &llamatest.Fault{Code: -3, Row: tt.row})})
			var b llama.Batch
			for s := range llama.SeqID(3) {
				d.check(d.feed(s, 'a'))
			}
			for i := range 10 { // ubatches: 0 0 0 0, 1 1 1 1, 1 1
				s, pos := llama.SeqID(0), llama.Pos(1+i)
				if i >= 4 {
					s, pos = 1, llama.Pos(i-3)
				}
				b.Add('b', pos, s, i == 9)
			}
			err := d.ctx.Decode(&b)
			if diff := cmp.Diff(&llama.DecodeError{Code: -3, Lost: tt.lost}, err); diff != "" {
				t.Fatal(diff)
			}
			for s, want := range tt.held {
				if got := len(d.ctx.Tokens(llama.SeqID(s))); got != want {
					t.Errorf("sequence %d holds %d rows, want %d", s, got, want)
				}
			}
			d.lost(tt.lost)
			if got, want := d.next(2, 'b'), d.model.TrueOutput([]llama.Token{'a', 'b'}, 1, llama.Sampling{TopP: 1}, 0)[0]; got != want {
				t.Errorf("the sequence that was not in the batch: got %d, want %d", got, want)
			}
		})
	}
}

// lost checks that lost sequences are good for removal alone.
func (d *driver) lost(sequences []llama.SeqID) {
	d.Helper()
	for _, s := range sequences {
		for verb, err := range map[string]error{
			"Decode":    d.feed(s, 'c'),
			"SeqCopy":   d.ctx.SeqCopy(s, 5, -1, -1),
			"StateLoad": d.ctx.StateLoad(s, nil, true),
		} {
			if !errors.Is(err, llama.ErrInvalid) {
				d.Errorf("%s of lost sequence %d: got error %v", verb, s, err)
			}
		}
		d.check(d.ctx.SeqRemove(s, -1, -1))
		d.check(d.feed(s, 'a'))
	}
}

func TestBackend(t *testing.T) {
	b := llamatest.NewBackend(map[string]llamatest.Options{"a.gguf": {Name: "a", TrainContext: 99}})
	if _, err := b.Load("b.gguf", llama.ModelParams{}); !errors.Is(err, llama.ErrLoad) {
		t.Errorf("a missing file: %v", err)
	}
	stop := func(done float32) bool { return done < 0.5 }
	if _, err := b.Load("a.gguf", llama.ModelParams{Progress: stop}); !errors.Is(err, llama.ErrLoad) {
		t.Errorf("a cancelled load: %v", err)
	}
	var progress []float32
	m, err := b.Load("a.gguf", llama.ModelParams{VocabOnly: true, Progress: func(done float32) bool {
		progress = append(progress, done)
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{0.25, 0.5, 0.75, 1}, progress); diff != "" {
		t.Errorf("progress:\n%s", diff)
	}
	if got := m.Info(); got.Name != "a" || got.TrainContext != 99 {
		t.Errorf("loaded %+v", got)
	}
	if _, err := m.NewContext(llama.ContextParams{Cells: 1, Sequences: 1, Batch: 1, UBatch: 1}); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("a context without weights: %v", err)
	}
	if b.Close() == nil {
		t.Error("closed while a model is open")
	}
	if err := errors.Join(m.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
