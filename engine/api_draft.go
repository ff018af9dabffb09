package engine

// This file is the engine's outer surface while the scheduler is being
// written; it is replaced by engine.go.

import (
	"context"
	"iter"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/prometheus/client_golang/prometheus"
)

// Params sizes an Engine. Zero values mean the defaults.
type Params struct {
	Context      llama.ContextParams   // Cells, Threads, Batch, KV; Sequences and Outputs follow from Parallel
	Parallel     int                   // requests that run at a time: 32
	MaxWaiting   int                   // requests that wait for a place: 1024
	QueueTimeout time.Duration         // longest wait for a place: 120 s
	Template     string                // chat template in place of the model's own
	Metrics      prometheus.Registerer // where the engine's metrics go; nil: nowhere
}

// Engine serves one model.
type Engine struct{}

// New creates the context, warms it up and starts the scheduler.
func New(model llama.Model, p Params) (*Engine, error) { panic("draft") }

// Prepared is a request that has passed every check that needs the model.
type Prepared struct{ tokens []llama.Token }

// PromptTokens is the length of the rendered prompt.
func (p *Prepared) PromptTokens() int { return len(p.tokens) }

// Prepare renders and tokenizes in the caller's goroutine. Errors are *Error.
func (e *Engine) Prepare(ctx context.Context, r *Request) (*Prepared, error) { panic("draft") }

// Render is Prepare without the length check, for the template and tokenize commands.
func (e *Engine) Render(ctx context.Context, r *Request) (llama.Prompt, error) { panic("draft") }

// Generate yields First, Texts, Finish; or an error (an *Error, or ctx's) as the last pair. Breaking out cancels.
func (e *Engine) Generate(ctx context.Context, p *Prepared) iter.Seq2[Event, error] { panic("draft") }

// Info describes the engine.
func (e *Engine) Info() Info { panic("draft") }

// State is what the engine is doing.
type State string

// The states of an engine.
const (
	StateReady    State = "ready"
	StateDraining State = "draining" // finishes what runs, takes nothing new
	StateStuck    State = "stuck"    // work is there and no step has ended for long
)

// Health is a snapshot that needs no lock of the scheduler.
type Health struct {
	State            State
	LastStep         time.Duration // age of the last finished step
	Running, Waiting int
}

// Health answers at once, also while a step computes.
func (e *Engine) Health() Health { panic("draft") }

// Shutdown refuses new work, lets the running end until ctx is done, then ends
// them with a CodeUnavailable error, and frees the context.
func (e *Engine) Shutdown(ctx context.Context) error { panic("draft") }
