//go:build cgo

package libllama

import (
	"strings"
	"testing"
)

func TestReadJSON(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"as written", `{"b": 1.50, "a" : [ ] }`, `{"b": 1.50, "a" : [ ] }`},
		{"largest integer", `[9223372036854775807, -9223372036854775808]`, `[9223372036854775807, -9223372036854775808]`},
		{"integers beyond 64 bits", `[9223372036854775808, 1,-98765432109876543210]`, `["#9223372036854775808", 1,"#-98765432109876543210"]`},
		{"floats beyond the largest", `{"a":1e400,"b":-1E+999,"c":1e-400}`, `{"a":"#inf","b":"#-inf","c":1e-400}`},
		{"digits in strings", `"12345678901234567890"`, `"12345678901234567890"`},
		{"escapes", `"\u00e9\ud83d\ude00\n\"\\\u0022\u005c\u0007\/"`, `"é😀\n\"\\\"\\\u0007\/"`},
		{"halves of pairs", `"\ud83d \ude00\ud83dx"`, "\"\uFFFD \uFFFD\uFFFDx\""},
		{"escaped quotes at the end", `["\\", "\\\""]`, `["\\", "\\\""]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, err := readJSON(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(j.append(nil, "#")); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestReadJSONRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		"":         "not valid JSON",
		"{":        "not valid JSON",
		"NaN":      "not valid JSON",
		"\"\xff\"": "not valid UTF-8",
		"1 2":      "not valid JSON",
		`{"a":}`:   "not valid JSON",
		`"\ud83d`:  "not valid JSON",
		`"\u12"`:   "not valid JSON",
		strings.Repeat("[", 101) + strings.Repeat("]", 101): "nested too deeply",
	} {
		if _, err := readJSON(raw); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", raw, err, want)
		}
	}
}

func TestAppendJSONString(t *testing.T) {
	const in = "a\"b\\c\n\x00\x7f é\u2028</script>\xff😀"
	const want = `"a\"b\\c\u000a\u0000` + "\x7f é\u2028</script>\uFFFD😀" + `"`
	if got := string(appendJSONString(nil, in)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
