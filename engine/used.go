package engine

// Used is what the answer to p has taken so far, for those who leave it before
// its end: nothing until its first token. Generate must not be running.
func (e *Engine) Used(p *Prepared) Usage {
	if p.generation == nil || !p.generation.started {
		return Usage{}
	}
	return p.generation.usage()
}

// usage is what has been taken from the sequence. It may be asked for once
// there was a token: then the scheduler has written what stands here.
func (g *generation) usage() Usage {
	return Usage{
		Prompt:    g.seq.promptLen,
		Cached:    g.seq.cached,
		Answer:    g.out.answer,
		Reasoning: g.out.reasoning,
	}
}
