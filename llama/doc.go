// Package llama is the vocabulary that the rest of the program shares with
// llama.cpp: tokens, batches, vocabularies, sampling parameters, rendered
// prompts, and the interfaces Backend, Model, Context and Chat.
//
// It is pure Go. Package llama/libllama implements the interfaces over
// llama.cpp through cgo; package llama/llamatest implements them with a
// deterministic fake and holds the contract suite that both must pass. Each
// method names the C function that stands behind it.
//
// A Model, its Vocab and its Chat may be used by any number of goroutines at
// once. A Context belongs to one goroutine at a time: in the server that is
// the engine's scheduler.
package llama
