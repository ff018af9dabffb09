package engine

import "time"

// minHeld is the least number of tokens that a sequence is held back for. Fewer cost about
// as much as the step that it waits.
const minHeld = 64

// A lead is another sequence, which is computing a start that this one needs too.
type lead struct {
	by *sequence // nil: none
	n  int       // tokens that they have in common
}

// goesOn tells that the common start is still being computed.
func (l lead) goesOn() bool { return l.by != nil && l.by.id != noSeq && l.by.computed < l.n }

// heldBack tells whether a waiting sequence is to go on waiting, since what another one is
// computing will save it most of its own prompt. It runs all the same once it has
// waited for half of the time that it may.
func (s *scheduler) heldBack(seq *sequence, now time.Time) bool {
	if !seq.lead.goesOn() {
		seq.lead = s.leadOf(seq)
	}
	return seq.lead.by != nil && (seq.admissions > 0 || now.Sub(seq.submitted) < s.queueTimeout/2)
}

// leadOf finds the running sequence with the longest common start, if it is worth waiting
// for.
func (s *scheduler) leadOf(seq *sequence) lead {
	var best lead
	for _, r := range s.running {
		if r.decoding() {
			continue
		}
		n := commonPrefix(r.tokens, seq.tokens[:len(seq.tokens)-1])
		if n > best.n && n > r.computed {
			best = lead{r, n}
		}
	}
	if best.n < s.minHeld || best.n < s.minHeld+s.cache.has(seq.tokens, s.running) {
		return lead{}
	}
	return best
}

// heed notes with those that lead who waits for them, and counts the latter.
func (s *scheduler) heed() {
	s.held = 0
	for _, r := range s.running {
		r.due, r.stop = r.pending(), len(r.tokens)
	}
	for _, seq := range s.waiting {
		if l := seq.lead; l.goesOn() {
			s.held++
			l.by.due = min(l.by.due, len(seq.tokens)-l.by.computed)
			l.by.stop = min(l.by.stop, l.n)
		}
	}
}
