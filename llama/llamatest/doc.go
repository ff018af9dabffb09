// Package llamatest is a deterministic fake of llama.cpp and the contract
// suite that the fake and package llama/libllama must both pass.
//
// A Model needs no file and no C. What it says after a sequence is a pure
// function of the tokens and positions that the sequence's cells hold, and of
// what those cells saw when they were computed. So a scheduler that mixes up
// cells, positions, sharing or recomputation gets other tokens than
// Model.TrueOutput, which needs no context. Tests that want a certain answer
// script it (Options.Script).
//
// A Context has the rules of llama.cpp's unified KV cache and, with
// Options.Hybrid, of a recurrent state beside it. It is stricter than
// llama.cpp where llama.cpp would compute nonsense in silence: it refuses holes
// in a sequence, stale cells after a restored state and the use of sequences
// that a failed Decode has lost, and it panics when two goroutines use it at
// once.
//
// TestModel is the contract. It knows nothing of the fake.
package llamatest
