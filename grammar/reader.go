package grammar

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A PieceKind says what a Piece is part of.
type PieceKind uint8

const (
	Content       PieceKind = iota // text for the user
	Reasoning                      // text of the model's thinking
	CallName                       // the beginning of a call
	CallArguments                  // the next part of a call's arguments
	CallEnd                        // a call is complete
)

// A Piece is the next part of an answer.
type Piece struct {
	Kind PieceKind
	// Call is the number of the call, from 0 on, for the kinds of calls.
	Call int
	// ID is what the model calls the call, with CallName; where the template writes
	// it behind the arguments, with CallEnd. Empty if the template writes none.
	ID string
	// Text is content, reasoning, the tool's name, or a part of the arguments, which
	// together are a JSON object.
	Text string
	// Start is where the text of content begins, in bytes of what was pushed; all of
	// the text stands there.
	Start int
}

// A Reader reads an answer as it is written, with the parser of the template
// (common_chat_peg_parse reads the whole answer each time). It looks at each byte
// a bounded number of times and keeps no goroutine. What it tells does not depend
// on how the answer is divided into pushes, other than where pieces are divided.
//
// What the parser does not read is text: whatever was not told yet comes as
// content. So no part of an answer is lost, other than the marks of the template
// and what its parser leaves out, and none is told twice.
type Reader struct {
	// Whole has calls told only once they are complete; a malformed call is content.
	// It is for answers that are free. Otherwise calls are told as they are written,
	// which is right for answers of a grammar. It must be set before the first Push.
	Whole bool

	program   *program
	text      []byte // the generation prompt and the answer
	generated int    // where the answer begins
	pos       int    // how far the parser has read
	closed    bool   // there is no more text
	state     readerState
	stack     []frame
	quiet     int // how many lookaheads surround the place
	steps     int

	queue   []tagEvent // not applied: the parser may take them back
	applied int        // how many events were applied before those of the queue

	cur      stream
	call     *readCall // the call that is being read
	calls    int       // how many calls were told
	callsEnd int       // where the last of them ends
	lastCall int       // the event that it began with
	told     int       // up to here the text was told, or is marks around what was
	blank    []byte    // reasoning, so far of blanks alone
	blankEnd int       // where it ends
	thought  bool      // reasoning was told
	out      []Piece
	split    []byte // a character's first bytes
}

type readerState uint8

const (
	parsing readerState = iota
	parsed              // the parser has come to its end, perhaps not to that of the text
	cut                 // the text is over before the parser is
	plain               // all further text is content
)

// Read starts to read an answer, behind the generation prompt.
func (e *Envelope) Read() *Reader {
	r := &Reader{program: e.peg.program, text: []byte(e.generation), generated: len(e.generation), told: len(e.generation)}
	r.push(int32(e.peg.Root))
	r.run()
	r.settle()
	return r
}

// Push takes more of the answer and returns what is certain by now. What may be
// the beginning of a mark is held back.
func (r *Reader) Push(text string) []Piece {
	if r.closed || text == "" {
		return nil
	}
	r.text = append(append(r.text, r.split...), text...)
	whole := wholeRunes(r.text)
	r.split = append(r.split[:0], r.text[whole:]...)
	r.text = r.text[:whole]
	r.run()
	return r.settle()
}

// wholeRunes is the length of the text without a character that is not complete.
func wholeRunes(text []byte) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// Close returns what was held back: the answer is over. Where it was cut, not ended by
// the model, a call is told as far as it has come, without its CallEnd. A call that was
// not told, and that the model has ended too early, is content.
func (r *Reader) Close(cutOff bool) []Piece {
	if r.closed {
		return nil
	}
	r.closed = true
	r.text, r.split = append(r.text, r.split...), nil
	r.run()
	if r.state == cut {
		r.stop(cutOff)
	}
	return r.settle()
}

// settle hands over what is to be told.
func (r *Reader) settle() []Piece {
	r.flush()
	r.deliver()
	if r.state == parsed {
		for r.pos < len(r.text) && strings.IndexByte(blanks, r.text[r.pos]) >= 0 {
			r.pos++
		}
		if r.pos < len(r.text) {
			r.state = plain
		}
	}
	if r.state == plain {
		r.tell(Content, r.told, len(r.text))
	}
	out := r.out
	r.out = nil
	return out
}

// blanks are what common/chat takes for white space.
const blanks = " \t\n\v\f\r"

// fail ends the parsing: the answer is not what the parser reads.
func (r *Reader) fail() {
	r.back(0)
	r.state = plain
}

// finish ends the parsing: the parser has read an answer.
func (r *Reader) finish() {
	r.apply()
	r.flush()
	r.cur = stream{}
	r.drop()
	r.told = max(r.told, r.pos)
	r.state = parsed
}

// stop tells the end of an answer that the parser wanted more of.
func (r *Reader) stop(cutOff bool) {
	for i, e := range r.queue {
		// A longer name may have been meant. A string that has not begun has no quotes.
		named := (e.tag == readName || e.tag == readArgName) && e.end == r.pos
		unbegun := (e.tag == readGemmaKey || e.tag == readGemmaQuoted) && e.opens && e.start == len(r.text)
		if named || unbegun {
			r.queue = r.queue[:i]
			break
		}
	}
	r.apply()
	r.flush()
	rest := max(r.told, r.pos)
	switch c := r.call; {
	case r.Whole && !cutOff && (c != nil || r.inCall()):
		r.drop()
		rest = r.told
	case c != nil && c.name != "":
		c.announce()
		rest = len(r.text)
	case r.inCall():
		rest = len(r.text)
		if r.Whole {
			rest = r.told
		}
	}
	if r.told = rest; len(bytes.Trim(r.text[rest:], blanks)) > 0 {
		r.tell(Content, rest, len(r.text))
	}
}

// inCall tells whether a call has begun that was not told.
func (r *Reader) inCall() bool {
	for _, f := range r.stack {
		if o := &r.program.ops[f.op]; o.call && !o.texts && f.start < len(r.text) && f.start >= r.callsEnd {
			return true
		}
	}
	return false
}
