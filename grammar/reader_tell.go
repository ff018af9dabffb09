package grammar

import "bytes"

// A tagEvent is what the parser comes upon: a tag that opens, or one that is read.
type tagEvent struct {
	tag        readTag
	opens      bool
	start, end int // of its text
}

// A stream is a tag whose text is told as it comes.
type stream struct {
	tag      readTag
	number   int // of the event that opened it
	from, to int // the text that was read and not told
}

// note puts an event in the queue.
func (r *Reader) note(e tagEvent) {
	if r.quiet == 0 {
		r.queue = append(r.queue, e)
	}
}

// back takes back the events from a number on. What was told of them stays told; a
// call that was told leaves nothing else to read.
func (r *Reader) back(number int) {
	if number >= r.applied {
		r.queue = r.queue[:number-r.applied]
		return
	}
	r.queue = r.queue[:0]
	if r.cur.tag != readNothing && r.cur.number >= number {
		r.flush()
		r.cur = stream{}
	}
	if c := r.call; c != nil && c.number >= number {
		if c.due {
			r.state = plain
		}
		r.drop()
	}
	if r.calls > 0 && r.lastCall >= number {
		r.state = plain
	}
}

// apply does what the events of the queue say.
func (r *Reader) apply() {
	for _, e := range r.queue {
		r.applied++
		if e.opens {
			r.open(e)
		} else {
			r.shut(e)
		}
	}
	r.queue = r.queue[:0]
}

func (r *Reader) open(e tagEvent) {
	if e.tag.streams() {
		r.cur = stream{tag: e.tag, number: r.applied - 1, from: e.start, to: e.end}
	}
	if e.tag == readOpen {
		r.drop()
		r.call = &readCall{number: r.applied - 1}
	} else if r.call != nil {
		r.call.open(e.tag)
	}
}

// shut ends a tag.
func (r *Reader) shut(e tagEvent) {
	if e.tag.streams() {
		r.cur.to = e.end
		r.flush()
		r.cur = stream{}
	}
	c := r.call
	if c == nil {
		return
	}
	text := bytes.Trim(r.text[e.start:e.end], blanks)
	switch e.tag {
	case readName:
		c.name = string(text)
		if e.start < r.told {
			r.call = nil // it was told as text, before the parser took that back
			return
		}
	case readID:
		if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
			text = text[1 : n-1]
		}
		c.id = string(text)
	case readArgName:
		c.argument(string(text))
	case readEnd:
		r.endCall(e.end)
		return
	default:
		c.shut(e.tag)
	}
	r.callRead(e.end)
}

// callRead tells that the present call was read up to a place.
func (r *Reader) callRead(end int) {
	c := r.call
	if r.Whole || c.name == "" || !c.due && r.program.ids && c.id == "" && len(c.args) == 0 {
		return
	}
	c.announce()
	r.told = max(r.told, end)
}

// endCall ends the present call.
func (r *Reader) endCall(end int) {
	if c := r.call; c.name != "" {
		c.finish()
		c.announce()
		r.deliver()
		p := Piece{Kind: CallEnd, Call: r.calls}
		if c.toldID == "" {
			p.ID = c.id
		}
		r.piece(p)
		r.calls++
		r.callsEnd, r.lastCall = end, c.number
		r.told = max(r.told, end)
	}
	r.call = nil
}

// deliver hands over what was read of the present call, if it is to be told.
func (r *Reader) deliver() {
	c := r.call
	if c == nil || !c.due {
		return
	}
	if !c.named {
		c.named = true
		r.piece(Piece{Kind: CallName, Call: r.calls, ID: c.toldID, Text: c.name})
	}
	if len(c.args) > 0 {
		r.piece(Piece{Kind: CallArguments, Call: r.calls, Text: string(c.args)})
		c.args = c.args[:0]
	}
}

// drop ends a call that is not read to its end.
func (r *Reader) drop() {
	if r.deliver(); r.call != nil && r.call.named {
		r.calls++
	}
	r.call = nil
}

// flush takes what was read of the present stream.
func (r *Reader) flush() {
	s := &r.cur
	if s.from == s.to {
		return
	}
	switch s.tag {
	case readContent:
		r.tell(Content, s.from, s.to)
	case readReasoning:
		r.reason(s.from, s.to)
	default:
		if r.call != nil {
			r.call.write(s.tag, r.text[s.from:s.to])
			r.callRead(s.to)
		}
	}
	s.from = s.to
}

// tell tells a text, as far as it was not told.
func (r *Reader) tell(kind PieceKind, from, to int) {
	if from = max(from, r.told); from < to {
		r.told = to
		r.piece(Piece{Kind: kind, Text: string(r.text[from:to]), Start: from - r.generated})
	}
}

// reason tells reasoning. Reasoning of blanks alone is none.
func (r *Reader) reason(from, to int) {
	if !r.thought {
		r.thought = len(bytes.Trim(r.text[from:to], blanks)) > 0
		if !r.thought {
			if from = max(from, r.told, r.blankEnd); from < to {
				r.blank = append(r.blank, r.text[from:to]...)
				r.blankEnd = to
			}
			return
		}
		if len(r.blank) > 0 && r.told < to {
			r.piece(Piece{Kind: Reasoning, Text: string(r.blank)})
			from = max(from, r.blankEnd)
		}
	}
	r.tell(Reasoning, from, to)
}

// piece hands over a piece, joined with the one before it if they are of one kind and,
// for content, stand side by side.
func (r *Reader) piece(p Piece) {
	if n := len(r.out); n > 0 && p.Kind <= Reasoning {
		last := &r.out[n-1]
		if last.Kind == p.Kind && (p.Kind == Reasoning || last.Start+len(last.Text) == p.Start) {
			last.Text += p.Text
			return
		}
	}
	r.out = append(r.out, p)
}
