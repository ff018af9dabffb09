// Package engine decides: it turns requests into prompts, schedules their
// tokens onto one llama context, and turns tokens back into events.
//
// The handlers call New once per model, and per request
//
//	p, err := eng.Prepare(ctx, request)
//	for ev, err := range eng.Generate(ctx, p) { ... }
//
// # The life of a request
//
// Prepare (prompt.go) runs in the caller's goroutine: messages become a prompt
// through the model's chat template, the prompt becomes tokens, and what needs
// the model is checked. Generate (engine.go) makes a sequence of it and submits
// it to the scheduler's inbox, which may refuse: the queue is bounded.
//
// The scheduler (scheduler.go) is one goroutine. It owns the llama context, the
// books of cells (cache.go) and all sequences. A sequence has tokens, and
// tokens[:computed] of them are in the KV cache; prefill and decode are what the
// difference happens to be. Each turn of its loop is a step:
//
//	intake       new sequences, and those whose clients have left
//	admit        waiting sequences run while there are places and cells, but for
//	             those whose start another one is computing (twins.go)
//	schedule     one row for each sequence that decodes, and as many rows of
//	             prompts as the step's time allows, predicted from measured costs
//	             (cost.go) and divided among the prompts (share.go)
//	Decode       llama.cpp computes the batch
//	Sample       draws a token for each row that has logits
//	postprocess  tokens go to the outboxes, ended sequences leave
//
// When a running sequence needs a cell and none is left, idle cells are given up
// first, then the youngest sequence is preempted: it keeps its tokens, gives up
// its cells and waits in front of the queue to be computed again. Sampling keeps
// no state but the token count, so nothing else has to be kept.
//
// Tokens come back through the sequence's outbox, which never blocks the loop. In
// the caller's goroutine again they become text (output.go): pieces to UTF-8
// (utf8.go), stop texts (stop.go), reasoning, content and calls (output.go), events. A
// request that asks for logprobs has the tokens of its content told with it (logprobs.go).
//
// A request that was accepted gets exactly one ending: a Finish or an error. If
// the caller leaves the loop over Generate, which is the only way to cancel, the
// scheduler takes the sequence out at its next step.
package engine
