// Command b3infer serves a language model through the OpenAI API, with
// llama.cpp inside the process.
//
// It wires the packages together and decides nothing about requests: flags
// become parameters (options.go), the computer's memory is compared with what
// the model takes before anything is loaded (machine.go, memory.go), and serve
// ties the life of the HTTP server to that of the engine (serve.go). The other
// commands show what the server would do with a request: template, tokenize.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(newProgram().run()) }

// run is the whole program; it returns the exit status.
func (p *program) run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := p.command().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(p.err, "b3infer: "+oneLine(err))
	return 1
}

// oneLine is an error's text without line breaks, which joined errors have.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// errInterrupted ends a command that a signal stopped before it was done.
var errInterrupted = errors.New("interrupted")
