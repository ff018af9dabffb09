package accounts

import (
	"slices"
	"time"
)

// The length of a window, and that of the slots in which time is counted.
const (
	windowTime  = time.Minute
	slotTime    = 100 * time.Millisecond
	windowSlots = int64(windowTime / slotTime)
)

// A window sums up what was charged within the last minute. It slides: a token
// bucket of the same rate is smaller, but lets twice the limit through in a
// minute that begins with a full bucket.
//
// What is charged in a slot of time leaves when the last of it is a minute old,
// and not when the slot's end is: nobody waits longer than the minute. So no
// minute, wherever it begins, holds more than the limit, and a window has at
// most 601 entries whatever the rate is.
type window struct {
	charges []charge // oldest first, one per slot
	sum     int64
}

type charge struct {
	slot, n int64
	last    time.Duration // when something was charged last
}

// leaves is the moment from which a charge no longer counts.
func (c charge) leaves() time.Duration { return c.last + windowTime }

// slotAt is the slot of a moment, given as the time since some fixed one.
func slotAt(at time.Duration) int64 { return int64(at / slotTime) }

// advance drops what is too old.
func (w *window) advance(at time.Duration) {
	old := 0
	for old < len(w.charges) && w.charges[old].leaves() <= at {
		w.sum -= w.charges[old].n
		old++
	}
	w.charges = w.charges[old:]
}

// add charges n now and returns the slot, by which it can be taken back.
func (w *window) add(at time.Duration, n int64) int64 {
	slot := slotAt(at)
	w.sum += n
	if last := len(w.charges) - 1; last >= 0 && w.charges[last].slot == slot {
		w.charges[last].n += n
		w.charges[last].last = at
	} else {
		w.charges = append(w.charges, charge{slot, n, at})
	}
	return slot
}

// takeBack takes n off what was charged in a slot, if that still counts.
func (w *window) takeBack(slot, n int64) {
	i, ok := slices.BinarySearchFunc(w.charges, slot, func(c charge, slot int64) int { return int(c.slot - slot) })
	if ok {
		w.charges[i].n -= n
		w.sum -= n
	}
}

// wait is the time from at until n more would fit under the limit, if nothing
// else is charged: 0 if they fit now. n is at most the limit.
func (w *window) wait(at time.Duration, n, limit int64) time.Duration {
	excess := w.sum + n - limit
	for _, c := range w.charges {
		if excess <= 0 {
			break
		}
		if excess -= c.n; excess <= 0 {
			return c.leaves() - at
		}
	}
	return 0
}

// empties is the time from at until nothing that was charged counts.
func (w *window) empties(at time.Duration) time.Duration {
	if len(w.charges) == 0 {
		return 0
	}
	return w.charges[len(w.charges)-1].leaves() - at
}
