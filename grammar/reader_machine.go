package grammar

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// A frame is an op at work. The stack of them is all that the parser has to
// remember where the text is not there yet.
type frame struct {
	op    int32
	n     int // children or characters that are done
	start int // where it began
	at    int // where its present child began
	mark  int // events before the present child
}

// The bounds of the parser's work. Beyond them an answer does not parse.
const (
	maxReadDepth = 1 << 16 // ops within one another
	minReadSteps = 1 << 22
	maxReadSteps = 1 << 8 // for each byte
)

// A verdict is what comes of a look at an op.
type verdict uint8

const (
	entered verdict = iota // a child is at work
	yes
	no
	wait // for text
)

func (r *Reader) push(op int32) {
	r.stack = append(r.stack, frame{op: op, start: r.pos, at: r.pos, mark: r.applied + len(r.queue)})
}

// run parses as far as the text goes.
func (r *Reader) run() {
	for r.state == parsing {
		if r.steps++; r.steps > minReadSteps+maxReadSteps*len(r.text) || len(r.stack) > maxReadDepth {
			r.fail()
			return
		}
		switch r.visit(&r.stack[len(r.stack)-1]) {
		case yes:
			r.leave(true)
		case no:
			r.leave(false)
		case wait:
			if r.closed {
				r.state = cut
			}
			return
		}
	}
}

// visit does the next work of an op.
func (r *Reader) visit(f *frame) verdict {
	o, over := &r.program.ops[f.op], r.pos >= len(r.text)
	switch o.kind {
	case opEpsilon:
		return yes
	case opStart:
		return decided(r.pos == 0)
	case opEnd:
		if over && !r.closed {
			return wait
		}
		return decided(over)
	case opSequence:
		if f.n == len(o.children) {
			r.leaveSequence(f.start, o)
			return yes
		}
		return r.enter(f, o.children[f.n])
	case opChoice:
		if f.n == len(o.children) {
			return no
		}
		return r.enter(f, o.children[f.n])
	case opRepeat:
		switch {
		case o.max != Unbounded && f.n >= o.max, over && r.closed && f.n >= o.min:
			return yes
		case over:
			return wait
		}
		return r.enter(f, o.children[0])
	case opAhead, opNotAhead:
		r.quiet++
		return r.enter(f, o.children[0])
	case opTag:
		if o.tag != readName && o.tag != readID && o.tag != readArgName {
			r.note(tagEvent{tag: o.tag, start: r.pos, end: r.pos, opens: true})
		}
		return r.enter(f, o.children[0])
	}
	return r.visitText(f, o)
}

// decided is yes or no.
func decided(ok bool) verdict {
	if ok {
		return yes
	}
	return no
}

func (r *Reader) enter(f *frame, child int32) verdict {
	f.at, f.mark = r.pos, r.applied+len(r.queue)
	r.push(child)
	return entered
}

// leave ends the op at work, and those around it that end with it.
func (r *Reader) leave(ok bool) {
	for r.state == parsing {
		r.stack = r.stack[:len(r.stack)-1]
		if len(r.stack) == 0 {
			if ok {
				r.finish()
			} else {
				r.fail()
			}
			return
		}
		f := &r.stack[len(r.stack)-1]
		switch o := &r.program.ops[f.op]; o.kind {
		case opSequence:
			if ok {
				f.n++
				return
			}
		case opChoice:
			if !ok {
				r.takeBack(f)
				f.n++
				return
			}
		case opRepeat:
			if ok && r.pos > f.at {
				f.n++
				return
			}
			if !ok {
				r.takeBack(f)
			}
			ok = f.n >= o.min
		case opAhead, opNotAhead:
			r.quiet--
			r.pos = f.start
			ok = ok == (o.kind == opAhead)
		case opTag:
			if ok {
				r.note(tagEvent{tag: o.tag, start: f.start, end: r.pos})
			}
		}
	}
}

// takeBack undoes what a frame's child has done.
func (r *Reader) takeBack(f *frame) {
	r.pos = f.at
	if r.quiet == 0 {
		r.back(f.mark)
	}
}

// leaveSequence notes the end of a call, or that the marks around texts or calls are
// read.
func (r *Reader) leaveSequence(start int, o *op) {
	if r.quiet > 0 || !o.call && !o.texts {
		return
	}
	if o.endsCall {
		r.note(tagEvent{tag: readEnd, start: start, end: r.pos})
		return
	}
	around := r.call == nil && r.callsEnd > start && !slices.ContainsFunc(r.queue, func(e tagEvent) bool { return e.tag == readEnd })
	if !o.call {
		around = r.cur.tag == readNothing && len(r.queue) == 0
	}
	if around {
		r.told = max(r.told, r.pos)
	}
}

// visitText reads text.
func (r *Reader) visitText(f *frame, o *op) verdict {
	rest := r.text[r.pos:]
	switch o.kind {
	case opLiteral:
		switch {
		case bytes.HasPrefix(rest, o.text):
			r.consume(r.pos+len(o.text), o.solid)
			return yes
		case !bytes.HasPrefix(o.text, rest):
			return no
		case r.closed && r.quiet == 0 && (r.cur.tag == readJSON || r.cur.tag == readValue):
			r.consume(len(r.text), false) // common/chat tells the beginning of null
		}
		return wait
	case opAny:
		if len(rest) == 0 {
			return wait
		}
		_, size := utf8.DecodeRune(rest)
		r.consume(r.pos+size, true)
		return yes
	case opSpace:
		blank := len(rest) - len(bytes.TrimLeft(rest, blanks))
		r.consume(r.pos+blank, false)
		if blank == len(rest) && !r.closed {
			return wait
		}
		return yes
	case opChars:
		return r.visitChars(f, o)
	case opString:
		return r.visitString(o)
	case opUntil:
		at, found := o.until.next(rest)
		r.steps += at
		r.consume(r.pos+at, at > 0)
		if found {
			return yes
		}
		if r.closed && r.quiet == 0 && (r.cur.tag == readContent || r.cur.tag == readReasoning) {
			r.consume(len(r.text), true) // no mark after all
		}
		return wait
	}
	return no
}

func (r *Reader) visitChars(f *frame, o *op) verdict {
	for o.max == Unbounded || f.n < o.max {
		rest := r.text[r.pos:]
		if len(rest) == 0 {
			if r.closed && f.n >= o.min {
				return yes
			}
			return wait
		}
		c, size := utf8.DecodeRune(rest)
		if !hasRune(runeSet(o.class), c) || c == utf8.RuneError && size == 1 {
			return decided(f.n >= o.min)
		}
		r.consume(r.pos+size, true)
		f.n++
		r.steps++
	}
	return yes
}

// visitString reads the inside of a quoted string.
func (r *Reader) visitString(o *op) verdict {
	at, v := r.pos, wait
scan:
	for at < len(r.text) {
		switch r.text[at] {
		case o.quote:
			v = yes
			break scan
		case '\\':
			size := escapeLen(r.text[at:], o.quote)
			if size < 0 {
				v = no
			}
			if size <= 0 {
				break scan
			}
			at += size
		default:
			at++
		}
	}
	r.steps += at - r.pos
	r.consume(at, at > r.pos)
	return v
}

// escapeLen is how long the escape is that begins s: 0 if s is too short to tell, -1
// if it is none.
func escapeLen(s []byte, quote byte) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] == quote || strings.IndexByte(`\/bfnrt`, s[1]) >= 0 {
		return 2
	}
	if s[1] != 'u' {
		return -1
	}
	for i := 2; i < 6; i++ {
		if i == len(s) {
			return 0
		}
		if !isHex(s[i]) {
			return -1
		}
	}
	return 6
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

// consume moves on in the text. Solid text is what decides: what was noted before
// it will not be taken back.
func (r *Reader) consume(to int, solid bool) {
	r.pos = to
	if r.quiet > 0 {
		return
	}
	if solid {
		r.apply()
	}
	if len(r.queue) == 0 && r.cur.tag != readNothing { // otherwise its end is in the queue
		r.cur.to = max(r.cur.to, to)
	}
}
