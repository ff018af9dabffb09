//go:build cgo

package libllama

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"encoding/json"
)

// maxJSONDepth bounds how deep schemas and arguments are nested: the engine
// recurses over them.
const maxJSONDepth = 100

// A jsonText is JSON as a client wrote it: key order and the spelling of
// numbers kept, escapes of letters resolved.
type jsonText struct {
	text []byte
	// wide are the numbers that fit no C type: C's parser would wrap integers
	// beyond 64 bits and refuse floats beyond the largest.
	wide []span
}

// jsonTexts are the JSON texts of a conversation, by what the client wrote.
type jsonTexts map[string]jsonText

func (texts jsonTexts) read(raw string) error {
	if _, known := texts[raw]; known {
		return nil
	}
	j, err := readJSON(raw)
	if err == nil {
		texts[raw] = j
	}
	return err
}

// wide tells whether there is a number that fits no C type.
func (texts jsonTexts) wide() bool {
	for _, j := range texts {
		if len(j.wide) > 0 {
			return true
		}
	}
	return false
}

// append adds the text. Wide numbers become strings: number and the digits.
func (j jsonText) append(dst []byte, number string) []byte {
	from := 0
	for _, w := range j.wide {
		dst = append(dst, j.text[from:w.from]...)
		dst = append(append(dst, '"'), number...)
		dst = append(append(dst, wideLiteral(j.text[w.from:w.to])...), '"')
		from = w.to
	}
	return append(dst, j.text[from:]...)
}

// wideLiteral is what Python's str makes of a number that fits no C type.
func wideLiteral(number []byte) string {
	switch f, err := strconv.ParseFloat(string(number), 64); {
	case !isFloat(number):
		return string(number)
	case err != nil && math.IsInf(f, -1):
		return "-inf"
	default:
		return "inf"
	}
}

func isFloat(number []byte) bool { return strings.ContainsAny(string(number), ".eE") }

func isWide(number []byte) bool {
	if isFloat(number) {
		_, err := strconv.ParseFloat(string(number), 64)
		return err != nil
	}
	if len(number) < 19 {
		return false
	}
	_, err := strconv.ParseInt(string(number), 10, 64)
	return err != nil
}

func readJSON(raw string) (jsonText, error) {
	if !json.Valid([]byte(raw)) {
		return jsonText{}, errors.New("not valid JSON")
	}
	if !utf8.ValidString(raw) {
		return jsonText{}, errors.New("not valid UTF-8")
	}
	j := jsonText{text: make([]byte, 0, len(raw))}
	depth := 0
	for i := 0; i < len(raw); {
		from := i
		switch c := raw[i]; {
		case c == '"':
			i = stringEnd(raw, i)
			j.text = appendResolved(j.text, raw[from:i])
			continue
		case c == '-' || '0' <= c && c <= '9':
			for i < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i]) >= 0 {
				i++
			}
			if isWide([]byte(raw[from:i])) {
				j.wide = append(j.wide, span{len(j.text), len(j.text) + i - from})
			}
		case c == '{' || c == '[':
			if depth++; depth > maxJSONDepth {
				return jsonText{}, errors.New("nested too deeply")
			}
			i++
		case c == '}' || c == ']':
			depth--
			i++
		default:
			i++
		}
		j.text = append(j.text, raw[from:i]...)
	}
	return j, nil
}

// stringEnd is the index behind the JSON string that starts at i.
func stringEnd(raw string, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// appendResolved adds a JSON string with \u escapes as the characters that they
// mean, where those may stand in a string. Halves of a pair become U+FFFD.
func appendResolved(dst []byte, quoted string) []byte {
	for i := 0; i < len(quoted); {
		if quoted[i] != '\\' {
			next := strings.IndexByte(quoted[i:], '\\')
			if next < 0 {
				next = len(quoted) - i
			}
			dst = append(dst, quoted[i:i+next]...)
			i += next
			continue
		}
		if quoted[i+1] != 'u' {
			dst = append(dst, quoted[i:i+2]...)
			i += 2
			continue
		}
		r := hex4(quoted[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			second := rune(-1)
			if strings.HasPrefix(quoted[i:], `\u`) {
				second = hex4(quoted[i+2:])
			}
			if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
				i += 6
			}
		}
		dst = appendJSONRune(dst, r)
	}
	return dst
}

func hex4(s string) rune {
	v, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil {
		return utf8.RuneError // json.Valid has seen to it that there are four digits
	}
	return rune(v)
}

// appendJSONRune adds a character of a JSON string.
func appendJSONRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r < 0x20:
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// appendJSONString adds s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		if c := s[i]; c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= utf8.RuneSelf && !(r == utf8.RuneError && size == 1) {
			i += size
			continue
		}
		dst = append(dst, s[from:i]...)
		dst = appendJSONRune(dst, r)
		i += size
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
