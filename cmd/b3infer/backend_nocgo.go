//go:build !cgo

package main

import (
	"errors"
	"log/slog"

	"github.com/b3os/b3infer/llama"
)

// Without cgo the program is for tests of its commands.
var errNoLlama = errors.New("this program was built without llama.cpp (CGO_ENABLED=0); scripts/build makes one with it")

func openBackend(*slog.Logger, int) (llama.Backend, error) { return nil, errNoLlama }

func newTemplate(string) (llama.Chat, error) { return nil, errNoLlama }
