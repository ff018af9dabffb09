// Command b3infer serves a language model through the OpenAI API, with
// llama.cpp inside the process.
//
// It wires the packages together and decides nothing about requests: flags
// become parameters (options.go), the computer's memory is compared with what
// the model takes before anything is loaded (machine.go, memory.go), and serve
// ties the life of the HTTP server to that of the engine (serve.go). The other
// commands show what the server would do with a request: template, tokenize,
// grammar.
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go p.obey(signals, cancel) // until the process ends
	err := p.command().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	p.complain(err)
	return 1
}

// obey lets the first signal end the work in order, and the second at once.
func (p *program) obey(signals <-chan os.Signal, cancel func()) {
	<-signals
	cancel()
	<-signals
	p.complain(errors.New("stopped before everything had ended"))
	os.Exit(1)
}

// complain tells the user what went wrong, in one line: joined errors have
// line breaks.
func (p *program) complain(err error) {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	fmt.Fprintln(p.err, "b3infer: "+strings.Join(lines, "; "))
}

// errInterrupted ends a command that a signal stopped before it was done.
var errInterrupted = errors.New("interrupted")
