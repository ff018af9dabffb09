package llamatest

import (
	"errors"
	"fmt"
	"math"

	"github.com/b3os/b3infer/llama"
)

// A Fault is an error for Options.OnDecode: the Decode computes the ubatches
// before the one with the given row and then fails, as llama_decode does when
// the backend fails.
type Fault struct {
	Code int // llama_decode's result
	Row  int // a row of the ubatch that fails
}

func (f *Fault) Error() string { return fmt.Sprintf("fault %d in the ubatch of row %d", f.Code, f.Row) }

// FailAt is an OnDecode that returns err from its nth call, counted from 1.
func FailAt(n int, err error) func(*llama.Batch) error {
	return func(*llama.Batch) error {
		n--
		if n == 0 {
			return err
		}
		return nil
	}
}

// Decode implements llama.Context.
func (c *Context) Decode(b *llama.Batch) error {
	c.enter()
	defer c.leave()
	if err := c.lock("decode"); err != nil {
		return err
	}
	err := c.check(b)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	fault, err := c.hook(b)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Len() > c.cells.free() {
		return llama.ErrNoKVSpace
	}
	c.rows, c.wanted = c.rows[:0], c.wanted[:0]
	if fault != nil {
		return c.fail(b, fault)
	}
	for row := range b.Seq {
		c.compute(b, row)
	}
	c.wanted = append(c.wanted, b.Output...)
	return nil
}

// hook calls Options.OnDecode.
func (c *Context) hook(b *llama.Batch) (*Fault, error) {
	if c.model.options.OnDecode == nil {
		return nil, nil
	}
	err := c.model.options.OnDecode(b)
	if fault, ok := errors.AsType[*Fault](err); ok {
		return fault, nil
	}
	return nil, err
}

// check refuses what llama.cpp refuses, aborts at, or would compute nonsense for.
func (c *Context) check(b *llama.Batch) error {
	n := b.Len()
	positions := n
	if len(b.Embd) > 0 {
		positions = n * c.model.options.PosPerRow
	}
	switch {
	case n == 0 || n > c.limits.Batch:
		return fmt.Errorf("%w: %d rows, of at most %d", llama.ErrInvalid, n, c.limits.Batch)
	case b.NonCausal && n > c.limits.UBatch:
		return fmt.Errorf("%w: %d non-causal rows, of at most %d", llama.ErrInvalid, n, c.limits.UBatch)
	case len(b.Token) > 0 == (len(b.Embd) > 0):
		return fmt.Errorf("%w: a batch holds tokens or embeddings", llama.ErrInvalid)
	case len(b.Token) > 0 && len(b.Token) != n || len(b.Embd) > 0 && len(b.Embd) != n*embedding ||
		len(b.Pos) != positions || len(b.Output) != n:
		return fmt.Errorf("%w: %d rows, %d tokens, %d floats, %d positions, %d outputs", llama.ErrInvalid,
			n, len(b.Token), len(b.Embd), len(b.Pos), len(b.Output))
	}
	outputs := 0
	c.order.begin()
	for row, s := range b.Seq {
		if err := c.checkRow(b, row); err != nil {
			return fmt.Errorf("%w: row %d: sequence %d, position %d: %v", llama.ErrInvalid, row, s, b.Pos[row], err)
		}
		if b.Output[row] {
			outputs++
		}
	}
	if outputs > c.limits.Outputs {
		return fmt.Errorf("%w: %d outputs, of at most %d", llama.ErrInvalid, outputs, c.limits.Outputs)
	}
	return nil
}

func (c *Context) checkRow(b *llama.Batch, row int) error {
	s := b.Seq[row]
	if s < 0 || int(s) >= len(c.sequences) {
		return fmt.Errorf("there are %d sequences", len(c.sequences))
	}
	if len(b.Token) > 0 && !c.model.vocab.Valid(b.Token[row]) {
		return fmt.Errorf("token %d", b.Token[row])
	}
	seq := &c.sequences[s]
	prev, ok := c.order.last(s)
	if !ok {
		if !c.whole(seq) {
			return errors.New("the sequence has holes, stale cells or a lost state")
		}
		prev = c.end(seq)
	}
	here := place{pos: b.Pos[row], image: len(b.Embd) > 0}
	if !here.follows(prev, c.model.options.PosPerRow > 1) {
		return fmt.Errorf("does not follow on %d", prev.pos)
	}
	c.order.put(s, here)
	return nil
}

// compute puts a row into a cell and, if its logits are wanted, keeps what they
// depend on.
func (c *Context) compute(b *llama.Batch, row int) {
	seq := &c.sequences[b.Seq[row]]
	token, content := rowContent(b, row)
	sees := seq.memory
	if b.NonCausal {
		for other, s := range b.Seq {
			if s == b.Seq[row] {
				_, x := rowContent(b, other)
				sees.state += mix(x ^ uint64(b.Pos[other]))
			}
		}
	}
	value := sees.value(content, b.Pos[row])
	seq.memory = seq.memory.with(value, c.model.options.Hybrid)
	seq.cells = append(seq.cells, c.cells.take(cell{value: value, pos: b.Pos[row], token: token}))
	seq.recurrent = b.Pos[row]
	out := outlook{}
	if b.Output[row] {
		c.tokens = c.appendTokens(c.tokens[:0], seq.cells[c.model.forgets(len(seq.cells)):])
		out = c.model.outlook(seq.memory, c.tokens)
	}
	c.rows = append(c.rows, out)
}

// rowContent is what a row puts in: its token, or NoToken, and a number that
// tells it apart from other rows.
func rowContent(b *llama.Batch, row int) (llama.Token, uint64) {
	if len(b.Token) > 0 {
		return b.Token[row], tokenContent(b.Token[row])
	}
	h := uint64(0)
	for _, x := range b.Embd[row*embedding : (row+1)*embedding] {
		h = mix(h ^ uint64(math.Float32bits(x)))
	}
	// The positions of embedding rows stand one dimension after the other.
	for i := row; i < len(b.Pos); i += b.Len() {
		h = mix(h ^ uint64(b.Pos[i]))
	}
	return llama.NoToken, ^h
}

// fail computes the ubatches before the fault. On plain models the rows of the
// failed ubatch do not stay; on hybrids all sequences of the batch are spoiled,
// since recurrent states cannot be taken back.
func (c *Context) fail(b *llama.Batch, f *Fault) error {
	done := min(f.Row, b.Len()-1) / c.limits.UBatch * c.limits.UBatch
	for row := range done {
		c.compute(b, row)
	}
	lost := &llama.DecodeError{Code: f.Code}
	for row, s := range b.Seq {
		seq := &c.sequences[s]
		if (row >= done || c.model.options.Hybrid) && !seq.lost {
			seq.lost = true
			lost.Lost = append(lost.Lost, s)
		}
	}
	return lost
}

// A place is where a row of a sequence stands.
type place struct {
	pos   llama.Pos
	image bool
}

// end is the place of a sequence's last row.
func (c *Context) end(seq *sequence) place {
	if len(seq.cells) == 0 {
		return place{pos: -1}
	}
	row := &c.cells.cells[seq.cells[len(seq.cells)-1]]
	return place{pos: row.pos, image: row.token == llama.NoToken}
}

// follows tells whether a row may stand behind prev. With mrope, images advance
// positions by less than their rows: an image's rows share positions, and what
// comes behind an image may jump forward.
func (p place) follows(prev place, mrope bool) bool {
	switch {
	case mrope && prev.image && p.image:
		return p.pos >= prev.pos
	case mrope && prev.image:
		return p.pos > prev.pos
	default:
		return p.pos == prev.pos+1
	}
}

// An order keeps the last place of each sequence of a batch.
type order struct {
	places []place
	round  []uint32
	now    uint32
}

func newOrder(sequences int) order {
	return order{places: make([]place, sequences), round: make([]uint32, sequences)}
}

func (o *order) begin() { o.now++ }

func (o *order) last(s llama.SeqID) (place, bool) { return o.places[s], o.round[s] == o.now }

func (o *order) put(s llama.SeqID, p place) { o.places[s], o.round[s] = p, o.now }
