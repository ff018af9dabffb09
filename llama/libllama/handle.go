//go:build cgo

package libllama

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/b3os/b3infer/llama"
)

// A handle is the life of a C object: how many children live on it, and
// whether it is closed. It does not free anything when it is dropped, since
// the garbage collector runs at any time and on any thread; it then says where
// the object was opened.
type handle struct {
	kind    string
	parent  *handle // nil for the backend
	cleanup runtime.Cleanup

	mu       sync.RWMutex // held for reading while C uses the object
	children int
	closed   bool
}

// open registers a child of parent. owner is the Go object that stands for
// the C object; a report is logged when it is dropped unclosed.
func open[T any](owner *T, kind string, parent *handle) (*handle, error) {
	if parent != nil {
		parent.mu.Lock()
		defer parent.mu.Unlock()
		if parent.closed {
			return nil, fmt.Errorf("open %s: %s: %w", kind, parent.kind, llama.ErrClosed)
		}
		parent.children++
	}
	h := &handle{kind: kind, parent: parent}
	where := "?"
	if _, file, line, ok := runtime.Caller(2); ok {
		where = fmt.Sprintf("%s:%d", file, line)
	}
	h.cleanup = runtime.AddCleanup(owner, func(where string) {
		slog.Warn("never closed", "what", kind, "opened", where)
	}, where)
	return h, nil
}

// use keeps the object from being freed until the returned function is called.
func (h *handle) use() (done func(), err error) {
	h.mu.RLock()
	if h.closed {
		h.mu.RUnlock()
		return nil, fmt.Errorf("%s: %w", h.kind, llama.ErrClosed)
	}
	return h.mu.RUnlock, nil
}

// close calls free once. It refuses while children live.
func (h *handle) close(free func()) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	if h.children > 0 {
		defer h.mu.Unlock()
		return fmt.Errorf("close %s: %d still in use: %w", h.kind, h.children, llama.ErrInvalid)
	}
	h.closed = true
	free()
	h.mu.Unlock()
	h.cleanup.Stop()
	if h.parent != nil {
		h.parent.mu.Lock()
		h.parent.children--
		h.parent.mu.Unlock()
	}
	return nil
}
