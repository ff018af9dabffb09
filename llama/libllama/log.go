//go:build cgo

package libllama

import (
	"context"
	"log/slog"
	"sync"
)

// logLine is a line of llama.cpp's log. A nil text with done set asks the
// writer to say when it has come so far.
type logLine struct {
	level int
	text  string
	done  chan<- struct{}
}

// logQueue hands llama.cpp's lines from its threads to a goroutine that writes
// them, so that a slow log never holds up a computation. Lines that find the
// queue full are dropped and counted.
type logQueue struct {
	queue chan logLine

	mu      sync.Mutex // guards what follows
	log     *slog.Logger
	dropped int
}

// lines is where b3GoLog puts what it gets.
var lines = &logQueue{queue: make(chan logLine, 1024), log: slog.New(slog.DiscardHandler)}

var startLogWriter = sync.OnceFunc(func() { go lines.write() })

func (q *logQueue) put(level int, text string) {
	select {
	case q.queue <- logLine{level: level, text: text}:
	default:
		q.mu.Lock()
		q.dropped++
		q.mu.Unlock()
	}
}

// write runs as long as the process.
func (q *logQueue) write() {
	for l := range q.queue {
		if l.done != nil {
			close(l.done)
			continue
		}
		q.mu.Lock()
		log, dropped := q.log, q.dropped
		q.dropped = 0
		q.mu.Unlock()
		if dropped > 0 {
			log.Warn("llama.cpp logs too fast, lines were dropped", "lines", dropped)
		}
		log.Log(context.Background(), slogLevel(l.level), l.text)
	}
}

// flush waits until all lines put so far have been written.
func (q *logQueue) flush() {
	done := make(chan struct{})
	q.queue <- logLine{done: done}
	<-done
}

func (q *logQueue) setLogger(log *slog.Logger) {
	q.mu.Lock()
	q.log = log.With("from", "llama.cpp")
	q.mu.Unlock()
}

// ggml's log levels (ggml_log_level).
const (
	ggmlDebug = 1 + iota
	ggmlInfo
	ggmlWarn
	ggmlError
)

// slogLevel maps ggml's levels. A load logs a page at its INFO, which is our
// Debug; its DEBUG is finer than that.
func slogLevel(level int) slog.Level {
	switch level {
	case ggmlError:
		return slog.LevelError
	case ggmlWarn:
		return slog.LevelWarn
	case ggmlInfo:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

// ggmlLevel is the lowest of ggml's levels that log shows.
func ggmlLevel(log *slog.Logger) int {
	for level := ggmlDebug; level < ggmlError; level++ {
		if log.Enabled(context.Background(), slogLevel(level)) {
			return level
		}
	}
	return ggmlError
}
