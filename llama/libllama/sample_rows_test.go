//go:build cgo

package libllama

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

// A mixture is rows of every kind over a few rows of logits.
type mixture struct {
	vocab  int
	logits []float32
	rows   []llama.SampleRow
	masks  []uint64
}

func newMixture(seed uint64, vocab, rows int) *mixture {
	const outputs, masks = 4, 3
	r := rand.New(rand.NewPCG(seed, 2))
	m := &mixture{vocab: vocab, logits: normal(seed, outputs*vocab, 3)}
	for i := range masks {
		rare := 1 << (4 * i)
		m.masks = append(m.masks, maskOf(vocab, func(llama.Token) bool { return r.IntN(rare) == 0 })...)
	}
	for range rows {
		row := llama.SampleRow{
			Output: int32(r.IntN(outputs)),
			P: &llama.Sampling{
				Temperature: pick[float32](r, 0, 0.5, 1, 1.5),
				TopK:        pick[int32](r, 0, 1, 40, 2000),
				TopP:        pick[float32](r, 0.5, 0.95, 1),
				MinP:        pick[float32](r, 0, 0.05),
				Presence:    pick[float32](r, 0, 0.5),
				Frequency:   pick[float32](r, 0, 0.1),
				Repetition:  pick[float32](r, 0, 1, 1.2),
			},
			Seed: r.Uint64(), Step: r.Uint64N(1000),
			Mask: int32(r.IntN(masks+1)) - 1,
			Top:  pick[int8](r, -1, 0, 5),
		}
		for _, t := range r.Perm(vocab)[:pick(r, 0, min(vocab, 10), vocab/4)] {
			row.Counts = append(row.Counts, llama.TokenCount{Token: llama.Token(t), Answer: int32(r.IntN(3))})
		}
		for _, t := range r.Perm(vocab)[:pick(r, 0, min(vocab, 30))] {
			row.Bias = append(row.Bias, llama.TokenBias{Token: llama.Token(t), Bias: pick[float32](r, -5, 5, -inf)})
		}
		m.rows = append(m.rows, row)
	}
	return m
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (m *mixture) sample(t testing.TB, s *sampler, rows []llama.SampleRow) []llama.Sampled {
	t.Helper()
	out := make([]llama.Sampled, len(rows))
	if err := s.sampleLogits(m.logits, rows, m.masks, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A row's result does not depend on the rows beside it, on their order, on
// threads, on earlier calls, nor on the order of its lists.
func TestSampleRowsAreIndependent(t *testing.T) {
	m := newMixture(1, 151_936, 24)
	alone := openSampler(t, m.vocab, 1, bestKernels)
	var want []llama.Sampled
	for i := range m.rows {
		want = append(want, m.sample(t, alone, m.rows[i:i+1])...)
	}
	for _, threads := range []int{1, 4} {
		s := openSampler(t, m.vocab, threads, bestKernels)
		for range 3 {
			if diff := cmp.Diff(want, m.sample(t, s, m.rows)); diff != "" {
				t.Fatalf("%d threads: %s", threads, diff)
			}
		}
		slices.Reverse(m.rows)
		got := m.sample(t, s, m.rows)
		slices.Reverse(m.rows)
		slices.Reverse(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d threads, rows reversed: %s", threads, diff)
		}
	}
	for i := range m.rows {
		slices.SortFunc(m.rows[i].Counts, func(a, b llama.TokenCount) int { return int(a.Token - b.Token) })
		slices.SortFunc(m.rows[i].Bias, func(a, b llama.TokenBias) int { return int(a.Token - b.Token) })
	}
	if diff := cmp.Diff(want, m.sample(t, alone, m.rows)); diff != "" {
		t.Fatalf("lists in order: %s", diff)
	}
}

// All instruction sets give the same tokens, and logprobs up to rounding.
func TestSampleInstructionSets(t *testing.T) {
	for _, vocab := range []int{1, 63, 255, 256, 257, 5003} {
		m := newMixture(uint64(vocab), vocab, 200)
		want := m.sample(t, openSampler(t, vocab, 1, 0), m.rows)
		for level := 1; level <= 2; level++ {
			s, err := newSampler(vocab, 1, level)
			if err != nil {
				t.Logf("instruction set %d not tested: %v", level, err)
				continue
			}
			got := m.sample(t, s, m.rows)
			s.close()
			if diff := cmp.Diff(want, got, near(1e-5)); diff != "" {
				t.Errorf("vocabulary %d, instruction set %d: %s", vocab, level, diff)
			}
		}
	}
}

func TestSampleDoesNotAllocate(t *testing.T) {
	m := newMixture(3, 5003, 32)
	s := openSampler(t, m.vocab, 1, bestKernels)
	out := make([]llama.Sampled, len(m.rows))
	if n := testing.AllocsPerRun(100, func() {
		if err := s.sampleLogits(m.logits, m.rows, m.masks, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations a call, want 0", n)
	}
}

// philox is Philox4x32-10 as its paper has it: Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		high0, low0 := bits.Mul32(0xD2511F53, counter[0])
		high1, low1 := bits.Mul32(0xCD9E8D57, counter[2])
		counter = [4]uint32{high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}

// uniform is the random number of a seed's step.
func uniform(seed, step uint64) float64 {
	x := philox([4]uint32{uint32(step), uint32(step >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return float64((uint64(x[1])<<32|uint64(x[0]))>>11) / (1 << 53)
}

// The known answers are the authors' (kat_vectors of Random123).
func TestPhilox(t *testing.T) {
	const ones = math.MaxUint32
	for _, test := range []struct {
		counter, want [4]uint32
		key           [2]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{counter: [4]uint32{ones, ones, ones, ones}, key: [2]uint32{ones, ones}, want: [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{counter: [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, key: [2]uint32{0xa4093822, 0x299f31d0}, want: [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(test.counter, test.key); got != test.want {
			t.Errorf("got %x, want %x", got, test.want)
		}
	}
}

// Of equal logits the drawn token is the random number, scaled: this ties the
// sampler's generator to the one above.
func TestSampleRandomNumber(t *testing.T) {
	const vocab = 1 << 14
	s := openSampler(t, vocab, 1, bestKernels)
	logits := make([]float32, vocab)
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]llama.SampleRow, 500)
	want := make([]llama.Token, len(rows))
	for i := range rows {
		rows[i] = llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopP: 1}, Seed: r.Uint64(), Step: r.Uint64(), Mask: -1, Top: -1}
		want[i] = llama.Token(uniform(rows[i].Seed, rows[i].Step) * vocab)
	}
	out := make([]llama.Sampled, len(rows))
	if err := s.sampleLogits(logits, rows, nil, out); err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if o.Token != want[i] {
			t.Errorf("seed %d, step %d: got %d, want %d", rows[i].Seed, rows[i].Step, o.Token, want[i])
		}
	}
}

// Numbers of neighbouring steps, and of neighbouring seeds, are uniform and
// independent: pairs fill 16 × 16 cells evenly.
func TestSampleRandomPairs(t *testing.T) {
	const n, cells = 1 << 17, 16
	for name, at := range map[string]func(i uint64) float64{
		"steps":         func(i uint64) float64 { return uniform(42, i) },
		"seeds":         func(i uint64) float64 { return uniform(i, 0) },
		"seed and step": func(i uint64) float64 { return uniform(i, i) },
		"high steps":    func(i uint64) float64 { return uniform(42, i<<32) },
		"high seeds":    func(i uint64) float64 { return uniform(i<<32, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			seen, want := make([]float64, cells*cells), make([]float64, cells*cells)
			for i := range uint64(n) {
				seen[int(at(i)*cells)*cells+int(at(i+1)*cells)]++
			}
			for i := range want {
				want[i] = float64(n) / (cells * cells)
			}
			if p := chiSquare(seen, want); p < 1e-4 {
				t.Errorf("got p = %g: not uniform", p)
			}
		})
	}
}

// chiSquare is the probability of counts at least as far from the expected
// ones, by Wilson and Hilferty's approximation. Cells of which fewer than five
// are expected are taken together.
func chiSquare(seen, want []float64) float64 {
	var sum, restSeen, restWant float64
	free := -1.0
	add := func(s, w float64) { sum += (s - w) * (s - w) / w; free++ }
	for i, w := range want {
		if w < 5 {
			restSeen += seen[i]
			restWant += w
			continue
		}
		add(seen[i], w)
	}
	if restWant > 0 {
		add(restSeen, restWant)
	}
	if free < 1 {
		return 1
	}
	z := (math.Cbrt(sum/free) - (1 - 2/(9*free))) / math.Sqrt(2/(9*free))
	return math.Erfc(z/math.Sqrt2) / 2
}
