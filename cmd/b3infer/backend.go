//go:build cgo

package main

import (
	"log/slog"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/libllama"
)

func openBackend(log *slog.Logger, threads int) (llama.Backend, error) {
	return libllama.Open(libllama.Params{Log: log, Threads: threads})
}

// newTemplate makes a chat of a template alone. Its texts for the beginning
// and end of a sequence are empty, since they are a vocabulary's.
func newTemplate(source string) (llama.Chat, error) {
	return libllama.NewTemplate(source, "", "")
}
