package handlers

import (
	"net/http"
	"sync"
	"time"

	"github.com/b3os/b3infer/engine"
)

const (
	// silence is how long a stream may be quiet before a comment is sent, so that
	// proxies do not take it for dead.
	silence = 15 * time.Second
	// writeTime is how long a client may take to accept what is sent to it.
	writeTime = time.Minute
)

// A stream is a response of server-sent events that has begun.
type stream struct {
	conn *http.ResponseController
	enc  encoder

	mu        sync.Mutex // guards what follows, and the writing: the timer writes too
	w         http.ResponseWriter
	frame     []byte    // reused
	last      time.Time // of the last write
	armed     time.Time // when the write deadline was set
	keepAlive *time.Timer
	err       error // of a write; none is tried after it
	closed    bool
}

// openStream writes the head of a stream. It is sent with the first event.
func openStream(w http.ResponseWriter, x *exchange, enc encoder) *stream {
	now := time.Now()
	s := &stream{w: w, enc: enc, conn: http.NewResponseController(w), last: now}
	x.stream = s
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setDeadline(now)
	s.keepAlive = time.AfterFunc(silence, s.tick)
	return s
}

// send writes what the dialect says for an event, and flushes it.
func (s *stream) send(ev engine.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame = s.enc.frame(s.frame[:0], ev)
	return s.write(s.frame)
}

// pass writes a frame that another server has made, and flushes it.
func (s *stream) pass(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(frame)
}

// fail writes what the dialect says for a failure. Nothing follows it.
func (s *stream) fail(e *engine.Error, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write(s.enc.failure(nil, e, v)) // the client may be gone, and there is no one else to tell
}

// close stops the keep-alive. Nothing is written after it.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.keepAlive.Stop()
}

// tick sends a comment if the stream has been silent, and sets the timer to
// when it would be the next time.
func (s *stream) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if time.Since(s.last) >= silence && s.write([]byte(":\n\n")) != nil {
		return
	}
	s.keepAlive.Reset(silence - time.Since(s.last))
}

// write sends a frame at once. Frames are not gathered here: the engine makes
// one event of all tokens that are ready when it is asked for the next.
func (s *stream) write(frame []byte) error {
	if s.err != nil || len(frame) == 0 {
		return s.err
	}
	now := time.Now()
	if now.Sub(s.armed) > writeTime/4 {
		s.setDeadline(now)
	}
	s.last = now
	if _, s.err = s.w.Write(frame); s.err == nil {
		s.err = s.conn.Flush()
	}
	return s.err
}

// setDeadline does nothing where the connection has no deadlines (in tests).
// net/http lifts it after the response.
func (s *stream) setDeadline(now time.Time) {
	s.armed = now
	_ = s.conn.SetWriteDeadline(now.Add(writeTime))
}
