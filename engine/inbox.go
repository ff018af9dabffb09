package engine

import (
	"sync"
	"time"
)

// An inbox is how other goroutines talk to the scheduler: they submit
// sequences, leave them, and ask for the end. Nothing here waits for a step.
type inbox struct {
	wake chan struct{} // holds one signal when there is something new

	mu        sync.Mutex
	submitted []*sequence
	left      []departure
	waiting   int // submitted and not yet running; the scheduler updates it
	limit     int
	numbers   uint64
	refuse    *Error // set once nothing is taken any more
	stop      bool   // end what runs, too
	pace      pace
}

func newInbox(limit int) *inbox {
	return &inbox{wake: make(chan struct{}, 1), limit: limit}
}

// submit queues a sequence, or says why not.
func (b *inbox) submit(s *sequence) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	if b.waiting >= b.limit {
		return &Error{
			Code:       CodeOverloaded,
			Message:    "The server is at capacity: too many requests are waiting",
			RetryAfter: b.pace.wait(1),
		}
	}
	b.numbers++
	s.number = b.numbers
	b.waiting++
	b.submitted = append(b.submitted, s)
	b.signal()
	return nil
}

// A departure is a sequence that nobody reads any more, and why.
type departure struct {
	seq *sequence
	end ending
}

// leave ends a sequence.
func (b *inbox) leave(s *sequence, e ending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, departure{s, e})
	b.signal()
}

// close refuses new sequences from now on.
func (b *inbox) close(why *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse == nil {
		b.refuse = why
	}
	b.signal()
}

// refusing tells whether close was called.
func (b *inbox) refusing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refuse != nil
}

// end makes the scheduler end everything; close must have been called.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stop = true
	b.signal()
}

// news is what came since the last call.
type news struct {
	submitted []*sequence
	left      []departure
	refuse    *Error
	stop      bool
}

func (b *inbox) take() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := news{submitted: b.submitted, left: b.left, refuse: b.refuse, stop: b.stop}
	b.submitted, b.left = nil, nil
	return n
}

// settle tells how many wait, and that so many have finished.
func (b *inbox) settle(waiting, finished int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = waiting + len(b.submitted)
	b.pace.add(finished, now)
}

// waitFor estimates how long the given number of places takes to come free.
func (b *inbox) waitFor(places int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace.wait(places)
}

// signal is called with mu held.
func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// A pace is the mean time between two finished requests.
type pace struct {
	last time.Time
	mean time.Duration
}

func (p *pace) add(finished int, now time.Time) {
	if finished == 0 {
		return
	}
	if !p.last.IsZero() {
		each := now.Sub(p.last) / time.Duration(finished)
		if p.mean == 0 {
			p.mean = each
		}
		p.mean += (each - p.mean) / 8
	}
	p.last = now
}

// wait is when so many more will have finished: at least a second, at most a
// minute.
func (p *pace) wait(finished int) time.Duration {
	return min(max(time.Duration(finished)*p.mean, time.Second), time.Minute)
}
