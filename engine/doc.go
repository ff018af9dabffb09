// Package engine decides: it turns requests into prompts, schedules their
// tokens onto one llama context, and turns tokens back into events.
//
// The handlers call New once per model, Prepare and Generate once per request:
//
//	p, err := eng.Prepare(ctx, request)   // render, tokenize, check the length
//	for ev, err := range eng.Generate(ctx, p) { ... }
//
// Leaving the loop, or ending ctx, cancels the request. See the methods for
// what runs in whose goroutine.
package engine
