package llamatest

import "github.com/b3os/b3infer/llama"

var sequenceCases = []contractCase{
	{"a copy goes on like the original", func(r *rig) {
		prompt := r.prompt(foxText, 30)
		want, tokens := r.answer(0, prompt, 6)
		r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
		r.prefill(0, prompt)
		r.must("SeqCopy", r.ctx.SeqCopy(0, 1, -1, -1))
		r.wantRange(1, 29)
		rest := tokens[:len(tokens)-1]
		r.near("the copy", r.extend(1, rest), want[1:])
		r.near("the original", r.extend(0, rest), want[1:])
	}},
	{"copies go their own ways", func(r *rig) {
		fox, ship := r.prompt(foxText, 20), r.prompt(shipText, 6)
		want := r.repeat(0, append(fox[:20:20], ship...), r.prompt(foxText, 5))
		r.prefill(1, fox)
		r.must("SeqCopy", r.ctx.SeqCopy(1, 2, -1, -1))
		r.extend(1, r.prompt(foxText, 9))
		r.near("the copy", r.repeat(2, ship, r.prompt(foxText, 5)), want)
	}},
	{"a copy outlives the original", func(r *rig) {
		prompt := r.prompt(foxText, 30)
		want, tokens := r.answer(0, prompt, 6)
		r.prefill(1, prompt)
		r.must("SeqCopy", r.ctx.SeqCopy(1, 2, -1, -1))
		r.must("SeqRemove", r.ctx.SeqRemove(1, -1, -1))
		r.wantRange(1, -1)
		r.near("the copy", r.extend(2, tokens[:len(tokens)-1]), want[1:])
	}},
	{"copies take no cells", func(r *rig) {
		n := r.ctx.Limits().Cells - 8
		r.prefill(0, r.prompt(foxText, n))
		for s := llama.SeqID(1); s < 4; s++ {
			r.must("SeqCopy", r.ctx.SeqCopy(0, s, -1, -1))
			r.wantRange(s, llama.Pos(n-1))
		}
		for s := range llama.SeqID(4) {
			r.extend(s, r.prompt(shipText, 2))
		}
		one := batchOf(r, 0, llama.Pos(n+2))
		r.mustBe("Decode", r.ctx.Decode(&one), llama.ErrNoKVSpace)
		// The shared cells stay until the last holder is gone.
		for s := range llama.SeqID(3) {
			r.must("SeqRemove", r.ctx.SeqRemove(s, -1, -1))
		}
		nine := batchOf(r, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
		r.mustBe("Decode", r.ctx.Decode(&nine), llama.ErrNoKVSpace)
		r.must("SeqRemove", r.ctx.SeqRemove(3, -1, -1))
		r.must("Decode", r.ctx.Decode(&nine))
	}},
	{"a part of a sequence can be shared", func(r *rig) {
		fox, ship := r.prompt(foxText, 30), r.prompt(shipText, 6)
		r.prefill(0, fox)
		err := r.ctx.SeqCopy(0, 1, -1, 12)
		if !r.ctx.Limits().RangeCopy {
			r.mustBe("SeqCopy", err, llama.ErrPartial)
			r.wantRange(1, -1)
			return
		}
		r.must("SeqCopy", err)
		r.wantRange(1, 11)
		want := r.repeat(2, append(fox[:12:12], ship...), r.prompt(foxText, 5))
		r.near("behind the shared part", r.repeat(1, ship, r.prompt(foxText, 5)), want)
	}},
	{"a sequence can grow by shares", func(r *rig) {
		if !r.ctx.Limits().RangeCopy {
			r.Skip("needs range copies")
		}
		prompt := r.prompt(foxText, 30)
		want, tokens := r.answer(0, prompt, 4)
		r.must("SeqCopy", r.ctx.SeqCopy(0, 1, 0, 10))
		r.must("SeqCopy", r.ctx.SeqCopy(0, 1, 10, 30))
		r.wantRange(1, 29)
		r.near("grown by shares", r.extend(1, tokens[:len(tokens)-1]), want[1:])
	}},
	{"an end can be cut off", func(r *rig) {
		fox, ship := r.prompt(foxText, 30), r.prompt(shipText, 6)
		r.prefill(0, fox)
		err := r.ctx.SeqRemove(0, 12, -1)
		if !r.ctx.Limits().PartialRemove {
			r.mustBe("SeqRemove", err, llama.ErrPartial)
			r.wantRange(0, 29)
			want := r.repeat(1, append(fox[:30:30], ship...), r.prompt(foxText, 5))
			r.near("after the refusal", r.repeat(0, ship, r.prompt(foxText, 5)), want)
			return
		}
		r.must("SeqRemove", err)
		r.wantRange(0, 11)
		want := r.repeat(1, append(fox[:12:12], ship...), r.prompt(foxText, 5))
		r.near("behind the cut", r.repeat(0, ship, r.prompt(foxText, 5)), want)
	}},
	{"removal takes the range alone", func(r *rig) {
		r.prefill(0, r.prompt(foxText, 10))
		r.prefill(1, r.prompt(foxText, 10))
		r.must("SeqRemove of nothing", r.ctx.SeqRemove(0, 10, -1))
		r.wantRange(0, 9)
		r.must("SeqRemove of an empty sequence", r.ctx.SeqRemove(2, -1, -1))
		r.must("SeqRemove", r.ctx.SeqRemove(0, 0, 10))
		r.wantRange(0, -1)
		r.wantRange(1, 9)
	}},
	{"a removed sequence starts anew", func(r *rig) {
		want, tokens := r.answer(1, r.prompt(shipText, 20), 4)
		r.prefill(0, r.prompt(foxText, 30))
		r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
		r.near("after removal", r.repeat(0, r.prompt(shipText, 20), tokens), want)
	}},
	{"ids are checked", func(r *rig) {
		r.prefill(0, r.prompt(foxText, 4))
		for _, bad := range []llama.SeqID{-1, llama.SeqID(r.ctx.Limits().Sequences), 1 << 30} {
			r.mustBe("SeqCopy to", r.ctx.SeqCopy(0, bad, -1, -1), llama.ErrInvalid)
			r.mustBe("SeqCopy from", r.ctx.SeqCopy(bad, 0, -1, -1), llama.ErrInvalid)
			r.mustBe("SeqRemove", r.ctx.SeqRemove(bad, -1, -1), llama.ErrInvalid)
			_, err := r.ctx.StateSize(bad, false)
			r.mustBe("StateSize", err, llama.ErrInvalid)
			if first, last := r.ctx.SeqRange(bad); first != -1 || last != -1 {
				r.Errorf("SeqRange(%d) is %d, %d", bad, first, last)
			}
		}
		r.wantRange(0, 3)
	}},
	{"a copy does not overwrite", func(r *rig) {
		r.prefill(0, r.prompt(foxText, 10))
		r.prefill(1, r.prompt(shipText, 5))
		r.mustBe("SeqCopy", r.ctx.SeqCopy(0, 1, -1, -1), llama.ErrInvalid)
		r.wantRange(1, 4)
	}},
	{"ids reach the limit", func(r *rig) {
		last := llama.SeqID(r.ctx.Limits().Sequences - 1)
		prompt := r.prompt(foxText, 10)
		want, tokens := r.answer(0, prompt, 3)
		r.near("the last id", r.repeat(last, prompt, tokens), want)
		r.must("SeqRemove", r.ctx.SeqRemove(last, -1, -1))
		r.must("SeqCopy", r.ctx.SeqCopy(0, last, -1, -1))
		r.wantRange(last, r.next(0)-1)
	}},
}
