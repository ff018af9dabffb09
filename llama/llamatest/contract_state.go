package llamatest

import "github.com/b3os/b3infer/llama"

// save is a sequence's state.
func (r *rig) save(s llama.SeqID, partial bool) []byte {
	r.Helper()
	size, err := r.ctx.StateSize(s, partial)
	r.must("StateSize", err)
	state := make([]byte, size)
	n, err := r.ctx.StateSave(s, state, partial)
	r.must("StateSave", err)
	if n > size {
		r.Fatalf("a state of %d bytes, StateSize said %d", n, size)
	}
	return state[:n]
}

var stateCases = []contractCase{
	{"a loaded sequence goes on", func(r *rig) {
		prompt := r.prompt(foxText, 30)
		want, tokens := r.answer(0, prompt, 6)
		r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
		r.prefill(0, prompt)
		state := r.save(0, false)
		r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
		for s := range llama.SeqID(2) { // where it was, and elsewhere
			r.must("StateLoad", r.ctx.StateLoad(s, state, false))
			r.wantRange(s, 29)
			r.near("after load", r.extend(s, tokens[:len(tokens)-1]), want[1:])
		}
		other := r.suite.rig(r.T)
		other.must("StateLoad", other.ctx.StateLoad(2, state, false))
		other.near("in another context", other.extend(2, tokens[:len(tokens)-1]), want[1:])
	}},
	{"saving changes nothing", func(r *rig) {
		prompt := r.prompt(foxText, 30)
		want, tokens := r.answer(0, prompt, 4)
		r.prefill(1, prompt)
		r.save(1, false)
		r.save(1, true)
		r.near("after save", r.extend(1, tokens[:len(tokens)-1]), want[1:])
	}},
	{"a loaded state takes cells", func(r *rig) {
		n := r.ctx.Limits().Cells/2 + 1
		r.prefill(0, r.prompt(foxText, n))
		state := r.save(0, false)
		if r.ctx.StateLoad(1, state, false) == nil {
			r.Errorf("two states of %d cells fit %d", n, r.ctx.Limits().Cells)
		}
		r.must("SeqRemove", r.ctx.SeqRemove(1, -1, -1))
		r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
		r.must("StateLoad", r.ctx.StateLoad(1, state, false))
		r.wantRange(1, llama.Pos(n-1))
	}},
	{"a loaded state does not overwrite", func(r *rig) {
		r.prefill(0, r.prompt(foxText, 10))
		r.prefill(1, r.prompt(shipText, 5))
		r.mustBe("StateLoad", r.ctx.StateLoad(1, r.save(0, false), false), llama.ErrInvalid)
		r.wantRange(1, 4)
	}},
	{"a short buffer is refused", func(r *rig) {
		r.prefill(0, r.prompt(foxText, 10))
		size, err := r.ctx.StateSize(0, false)
		r.must("StateSize", err)
		_, err = r.ctx.StateSave(0, make([]byte, size-1), false)
		r.mustBe("StateSave", err, llama.ErrInvalid)
	}},
	{"a cut state is refused", func(r *rig) {
		prompt := r.prompt(foxText, 10)
		want, tokens := r.answer(0, prompt, 3)
		state := r.save(0, false)
		for _, n := range []int{0, 3, len(state) / 2, len(state) - 1} {
			if r.ctx.StateLoad(1, state[:n], false) == nil {
				r.Errorf("%d of %d bytes were loaded", n, len(state))
			}
			r.must("SeqRemove", r.ctx.SeqRemove(1, -1, -1))
		}
		r.near("after refusals", r.repeat(1, prompt, tokens), want)
	}},
	{"a partial state takes a hybrid back", func(r *rig) {
		if !r.model.Info().Hybrid {
			r.Skip("only hybrids have a recurrent state")
		}
		prompt := r.prompt(foxText, 30)
		want, tokens := r.answer(0, prompt, 5)
		r.prefill(1, prompt)
		state := r.save(1, true)
		if whole := r.save(1, false); len(state) >= len(whole) {
			r.Errorf("the partial state has %d bytes, the whole one %d", len(state), len(whole))
		}
		for range 2 {
			r.extend(1, r.prompt(shipText, 7))
			r.must("StateLoad", r.ctx.StateLoad(1, state, true))
			r.must("SeqRemove of what lies behind the state", r.ctx.SeqRemove(1, 30, -1))
			r.wantRange(1, 29)
			r.near("from the checkpoint", r.extend(1, tokens[:len(tokens)-1]), want[1:])
		}
	}},
}
