package grammar

import (
	"bytes"
	"slices"
)

// A readCall is a call as far as it was read. Its arguments are brought into JSON as
// common_chat_peg_mapper does.
type readCall struct {
	number   int // of the event that it began with
	name, id string
	args     []byte // not handed over
	due      bool   // it is to be told
	toldID   string // with its name
	named    bool   // its name was told

	written bool // there are arguments
	members int  // how many, where they come one by one
	ignored bool // the JSON value is no object
	braces  braces
	python  pythonWriter
	levels  []gemmaLevel
}

// announce has the call told, with its id if that is known.
func (c *readCall) announce() {
	if !c.due {
		c.due, c.toldID = true, c.id
	}
}

// put adds to the arguments.
func (c *readCall) put(text ...byte) {
	if len(text) > 0 {
		c.written = true
		c.args = append(c.args, text...)
		c.braces.read(text)
	}
}

// argument begins an argument.
func (c *readCall) argument(name string) {
	before := `{"`
	if c.members > 0 {
		before = `,"`
	}
	c.members++
	c.put(append(appendEscaped([]byte(before), []byte(name)), `":`...)...)
}

// open begins a part of the arguments.
func (c *readCall) open(tag readTag) {
	switch tag {
	case readJSON:
		c.ignored = false
	case readValue:
		c.python = pythonWriter{}
	case readString, readGemmaKey, readGemmaQuoted:
		c.put('"')
	case readGemmaMember:
		c.comma(false)
	case readGemmaValue:
		c.comma(true)
	case readGemmaDict:
		c.put('{')
		c.levels = append(c.levels, gemmaLevel{})
	case readGemmaArray:
		c.put('[')
		c.levels = append(c.levels, gemmaLevel{array: true})
	}
}

// write takes text of a part.
func (c *readCall) write(tag readTag, text []byte) {
	switch tag {
	case readJSON:
		if !c.written {
			c.ignored = c.ignored || text[0] != '{'
		}
		if !c.ignored {
			c.put(text...)
		}
	case readValue:
		c.put(c.python.append(nil, text)...)
	case readString, readGemmaText:
		c.put(appendEscaped(nil, text)...)
	case readGemmaRaw:
		c.put(text...)
	}
}

// shut ends a part.
func (c *readCall) shut(tag readTag) {
	switch tag {
	case readValue:
		c.put(c.python.end(nil)...)
	case readString, readGemmaQuoted:
		c.put('"')
	case readGemmaKey:
		c.put('"', ':')
	case readGemmaDict:
		c.put('}')
		c.leaveLevel()
	case readGemmaArray:
		c.put(']')
		c.leaveLevel()
	}
}

// finish ends the arguments. What a model has left open in a value is closed.
func (c *readCall) finish() {
	if !c.written {
		c.put('{')
	}
	if c.braces.depth > 0 {
		c.put(bytes.Repeat([]byte{'}'}, c.braces.depth)...)
	}
}

// A gemmaLevel is an object or array of Gemma's notation.
type gemmaLevel struct {
	array   bool
	members int
}

func (c *readCall) leaveLevel() {
	if n := len(c.levels); n > 0 { // a parser may have the notation in half
		c.levels = c.levels[:n-1]
	}
}

// comma separates the members of an array or of an object.
func (c *readCall) comma(array bool) {
	if n := len(c.levels); n > 0 && c.levels[n-1].array == array {
		if c.levels[n-1].members > 0 {
			c.put(',')
		}
		c.levels[n-1].members++
	}
}

// braces counts the braces that are open in JSON.
type braces struct {
	depth           int
	quoted, escaped bool
}

func (b *braces) read(text []byte) {
	for _, c := range text {
		switch {
		case b.escaped:
			b.escaped = false
		case c == '\\':
			b.escaped = b.quoted
		case c == '"':
			b.quoted = !b.quoted
		case b.quoted:
		case c == '{':
			b.depth++
		case c == '}':
			b.depth--
		}
	}
}

// appendEscaped appends text as the inside of a JSON string.
func appendEscaped(to, text []byte) []byte {
	const hex = "0123456789abcdef"
	for _, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			to = append(to, c)
			continue
		}
		to = append(to, '\\')
		switch i := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), c); {
		case i >= 0:
			to = append(to, `"\bfnrt`[i])
		default:
			to = append(to, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return to
}

// A pythonWriter turns values in Python's notation into JSON, which stays as it is
// (normalize_quotes_to_json).
type pythonWriter struct {
	quote   byte   // that the string began with, or 0
	escaped bool   // behind a backslash in a string
	word    []byte // that may be True, False or None
	inWord  bool   // behind another character of a word
}

var pythonWords = map[string]string{"True": "true", "False": "false", "None": "null"}

func (w *pythonWriter) append(to, text []byte) []byte {
	for _, c := range text {
		if w.quote != 0 {
			to = w.inString(to, c)
			continue
		}
		isWord := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if isWord && (len(w.word) > 0 || !w.inWord && slices.Contains([]byte("TFN"), c)) {
			if w.word = append(w.word, c); len(w.word) > len("False") {
				to = w.end(to)
			}
			w.inWord = true
			continue
		}
		to = w.end(to)
		w.inWord = isWord
		switch c {
		case '"', '\'':
			w.quote = c
			c = '"'
		}
		to = append(to, c)
	}
	return to
}

// inString takes a character of a string.
func (w *pythonWriter) inString(to []byte, c byte) []byte {
	switch {
	case w.escaped:
		w.escaped = false
		if w.quote == '\'' && c == '\'' {
			return append(to, c)
		}
		return append(to, '\\', c)
	case c == '\\':
		w.escaped = true
		return to
	case c == w.quote:
		w.quote, w.inWord = 0, false
		return append(to, '"')
	case c == '"':
		return append(to, '\\', '"')
	}
	return append(to, c)
}

// end appends what was held back: a word, or the beginning of one where the value
// ends in it.
func (w *pythonWriter) end(to []byte) []byte {
	if w.escaped {
		w.escaped = false
		return append(to, '\\')
	}
	for python, json := range pythonWords {
		if n := len(w.word); n > 0 && n <= len(python) && python[:n] == string(w.word) {
			to = append(to, json[:n]...)
			w.word = w.word[:0]
			return to
		}
	}
	to = append(to, w.word...)
	w.word = w.word[:0]
	return to
}
