package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/grammar/mask"
	"github.com/b3os/b3infer/llama"
)

// grammarStats is what grammar --stats tells of a schema. Times are of the
// measuring thread alone, where the system tells them.
type grammarStats struct {
	Tokens       int     `json:"vocabulary_tokens"`
	VocabularyMS float64 `json:"vocabulary_ms"` // to prepare the vocabulary, once per model
	CompileMS    float64 `json:"compile_ms"`    // the median of some
	FirstMaskMS  float64 `json:"first_mask_ms"` // compiling, a new automaton and its first mask; the median of some
	Walks        int     `json:"walks"`
	Complete     int     `json:"complete_walks"` // whose text came to its end
	Masks        int     `json:"masks"`
	Cold         spread  `json:"cold_us"` // masks of a new automaton
	Warm         spread  `json:"warm_us"` // the same masks again
	Accept       spread  `json:"accept_us"`

	States         int `json:"states"`
	Configurations int `json:"configurations"`
	Frames         int `json:"frames"`
	InnerMasks     int `json:"inner_masks"`
	Bytes          int `json:"bytes"` // that the automaton holds after the walks
}

// A spread is how long calls of one kind took, in microseconds.
type spread struct {
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// showStats measures the schema's grammar against the model's vocabulary.
func (p *program) showStats(o grammarOptions) error {
	text, err := p.readInput([]string{o.schema})
	if err != nil {
		return err
	}
	return p.withVocabulary(o.model, func(model llama.Model) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began := threadTime()
		vocab, err := engine.MaskVocabulary(model)
		if err != nil {
			return err
		}
		m := measurer{tokens: model.Vocab(), masks: vocab, words: make([]uint64, vocab.Words())}
		m.stats.Tokens, m.stats.VocabularyMS = vocab.Len(), milliseconds(threadTime()-began)
		err = m.measure(func() (*grammar.Grammar, error) {
			return grammar.FromSchema(text, grammar.Options{Strict: !o.bestEffort, Unique: true})
		})
		if err != nil {
			return err
		}
		if o.json {
			return p.printJSON(m.stats)
		}
		return p.printStats(&m.stats)
	})
}

// How much is measured.
const (
	compileRuns  = 9
	statsWalks   = 16
	walkTokens   = 256 // of a walk at most
	walkPatience = 64  // tokens, from which on a walk closes what is open
)

// A measurer takes random walks through the masks of a grammar.
type measurer struct {
	tokens *llama.Vocab
	masks  *mask.Vocabulary
	words  []uint64
	stats  grammarStats
}

func (m *measurer) measure(compile func() (*grammar.Grammar, error)) error {
	var a *mask.Automaton
	var compiling, first []time.Duration
	for range compileRuns {
		began := threadTime()
		g, err := compile()
		if err != nil {
			return err
		}
		compiling = append(compiling, threadTime()-began)
		if a, err = mask.New(g, m.masks, mask.Limits{}); err != nil {
			return err
		}
		s, err := a.Start(nil)
		if err != nil {
			return err
		}
		if _, err := s.Mask(m.words); err != nil {
			return err
		}
		first = append(first, threadTime()-began)
	}
	m.stats.CompileMS, m.stats.FirstMaskMS = milliseconds(quantile(compiling, 0.5)), milliseconds(quantile(first, 0.5))

	var cold, warm, accept []time.Duration
	random := rand.New(rand.NewPCG(1, 2))
	for range statsWalks {
		walk, err := m.walk(a, random, &cold)
		if err != nil {
			return err
		}
		if err := m.again(a, walk, &warm, &accept); err != nil {
			return err
		}
	}
	s := a.Stats()
	m.stats.Walks, m.stats.Masks = statsWalks, len(cold)
	m.stats.Cold, m.stats.Warm, m.stats.Accept = spreadOf(cold), spreadOf(warm), spreadOf(accept)
	m.stats.States, m.stats.Configurations, m.stats.Frames, m.stats.InnerMasks, m.stats.Bytes =
		s.States, s.Configurations, s.Frames, s.InnerMasks, s.Bytes
	return nil
}

// walk takes one random token after the other until the text has come to its
// end, or is long. It notes how long each mask took.
func (m *measurer) walk(a *mask.Automaton, random *rand.Rand, took *[]time.Duration) (walk []int32, err error) {
	s, err := a.Start(nil)
	if err != nil {
		return nil, err
	}
	var text []byte
	for len(walk) < walkTokens {
		began := threadTime()
		allowed, err := s.Mask(m.words)
		*took = append(*took, threadTime()-began)
		if err != nil {
			return nil, fmt.Errorf("the mask after %q: %w", text, err)
		}
		if len(walk) >= walkPatience && s.Done() {
			m.stats.Complete++
			return walk, nil
		}
		token := m.nth(random.IntN(allowed))
		if len(walk) >= walkPatience {
			token = m.closing(token)
		}
		if m.tokens.IsEnd(llama.Token(token)) {
			m.stats.Complete++
			return walk, nil
		}
		if err := s.Accept(token); err != nil {
			return nil, fmt.Errorf("token %d after %q: %w", token, text, err)
		}
		walk = append(walk, token)
		text = append(text, m.tokens.Piece(llama.Token(token))...)
	}
	return walk, nil
}

// again goes the same way once more.
func (m *measurer) again(a *mask.Automaton, walk []int32, masks, accepts *[]time.Duration) error {
	s, err := a.Start(nil)
	if err != nil {
		return err
	}
	for i := range len(walk) + 1 {
		began := threadTime()
		if _, err := s.Mask(m.words); err != nil {
			return err
		}
		masked := threadTime()
		*masks = append(*masks, masked-began)
		if i == len(walk) {
			break
		}
		if err := s.Accept(walk[i]); err != nil {
			return err
		}
		*accepts = append(*accepts, threadTime()-masked)
	}
	return nil
}

// nth is the n-th token of the mask, counted from 0.
func (m *measurer) nth(n int) int32 {
	for token := range int32(m.masks.Len()) {
		if m.has(token) {
			if n == 0 {
				return token
			}
			n--
		}
	}
	panic("fewer tokens than counted")
}

func (m *measurer) has(token int32) bool { return m.words[token/64]>>(token%64)&1 != 0 }

// closing is the shortest token of the mask that ends a string, an array or an
// object, or else the given one.
func (m *measurer) closing(other int32) int32 {
	for _, end := range []string{`"`, "]", "}"} {
		for token := range int32(m.masks.Len()) {
			if m.has(token) && bytes.Equal(m.tokens.Piece(llama.Token(token)), []byte(end)) {
				return token
			}
		}
	}
	return other
}

func spreadOf(times []time.Duration) spread {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	us := func(t time.Duration) float64 { return float64(t.Nanoseconds()) / 1000 }
	return spread{us(sum) / float64(max(len(times), 1)), us(quantile(times, 0.99)), us(quantile(times, 1))}
}

// quantile is the time that a share q of the times does not exceed, 0 for none.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func milliseconds(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }

func (p *program) printStats(s *grammarStats) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "vocabulary\t%d tokens, prepared in %.0f ms\n", s.Tokens, s.VocabularyMS)
	fmt.Fprintf(w, "compile\t%.2f ms; to the first mask %.2f ms\n", s.CompileMS, s.FirstMaskMS)
	fmt.Fprintf(w, "walks\t%d, %d of them complete; %d masks\n", s.Walks, s.Complete, s.Masks)
	for _, row := range []struct {
		name string
		spread
	}{{"cold masks", s.Cold}, {"warm masks", s.Warm}, {"accept", s.Accept}} {
		fmt.Fprintf(w, "%s\tmean %.1f µs, p99 %.1f µs, max %.1f µs\n", row.name, row.Mean, row.P99, row.Max)
	}
	fmt.Fprintf(w, "automaton\t%d states, %d configurations, %d frames, %d inner masks, %.2f MiB\n",
		s.States, s.Configurations, s.Frames, s.InnerMasks, float64(s.Bytes)/(1<<20))
	return w.Flush()
}

// checkStats refuses what does not go with --stats.
func (o *grammarOptions) checkStats(args []string) error {
	switch {
	case !o.stats && o.json:
		return errors.New("--json is for --stats")
	case !o.stats:
		return nil
	case o.check || o.jsonl:
		return errors.New("--stats measures one schema: leave out --check and --jsonl")
	case o.model == "":
		return errors.New("--stats needs the vocabulary of a model: give a GGUF file with --model FILE")
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}
