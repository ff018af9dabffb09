package accounts

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxQueued is how many records wait in memory, written or not.
	maxQueued = 8192
	// batchSize is how many are written in one transaction, and how many make
	// the writer start before writeEvery is over.
	batchSize  = 256
	writeEvery = 500 * time.Millisecond
)

// books are the records that are not yet in the file.
type books struct {
	mu      sync.Mutex
	room    int // for records, those being written included
	queued  []Record
	writing []Record       // the batch that a transaction is about
	lost    map[line]entry // of records for which there was no room: they are paid for all the same
	dropped uint64
	full    chan struct{} // holds something when a batch is full
}

// A line of the ledger is about the use of one key on one model on one day.
type line struct {
	day                               int64
	organization, project, key, model string
}

// An entry is what a line says.
type entry struct {
	requests int64
	usage    Usage
	cost     Credits
}

func (e *entry) add(o entry) {
	e.requests += o.requests
	e.usage.Prompt += o.usage.Prompt
	e.usage.Cached += o.usage.Cached
	e.usage.Completion += o.usage.Completion
	e.usage.Reasoning += o.usage.Reasoning
	e.cost += o.cost
}

// enter books a record in a ledger. Requests that used nothing leave no line.
func enter(ledger map[line]entry, r Record) {
	if r.Usage == (Usage{}) && r.Cost == 0 {
		return
	}
	key := line{day(r.Time), r.OrganizationID, r.ProjectID, r.KeyID, r.Model}
	sum := ledger[key]
	sum.add(entry{1, r.Usage, r.Cost})
	ledger[key] = sum
}

func (b *books) init() {
	b.room = maxQueued
	b.lost = map[line]entry{}
	b.full = make(chan struct{}, 1)
}

// put queues a record, or, when there is no room, only what it costs.
func (b *books) put(r Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queued)+len(b.writing) >= b.room {
		b.dropped++
		enter(b.lost, r)
		return
	}
	b.queued = append(b.queued, r)
	if len(b.queued) >= batchSize {
		select {
		case b.full <- struct{}{}:
		default: // it has been told
		}
	}
}

// find is a record that is not yet in the file.
func (b *books) find(id string) (Record, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range [][]Record{b.queued, b.writing} {
		if i := slices.IndexFunc(list, func(r Record) bool { return r.ID == id }); i >= 0 {
			return list[i], true
		}
	}
	return Record{}, false
}

// take begins a batch: some records, and the ledger's lines for those that
// were dropped.
func (b *books) take() (records []Record, lost map[line]entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queued), batchSize)
	b.writing = slices.Clone(b.queued[:n])
	b.queued = slices.Delete(b.queued, 0, n)
	lost, b.lost = b.lost, map[line]entry{}
	return b.writing, lost
}

// done ends a batch that was written, or puts it back.
func (b *books) done(written bool, lost map[line]entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !written {
		b.queued = append(b.writing, b.queued...)
		merge(b.lost, lost)
	}
	b.writing = nil
}

// merge adds the entries of one ledger to another.
func merge(into, from map[line]entry) {
	for key, e := range from {
		sum := into[key]
		sum.add(e)
		into[key] = sum
	}
}
