package grammar

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatterns(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no []string
	}{
		{"", []string{"", "x"}, nil},
		{"a+", []string{"a", "xxaayy"}, []string{"", "xyz"}},
		{"^a*$", []string{"", "aaa"}, []string{"aab", "b", "a\n"}},
		{"^a|b$", []string{"a", "ax", "xb", "b"}, []string{"xa", "bx"}},
		{"^(?:a|b)$", []string{"a", "b"}, []string{"ab", ""}},
		{"a{2,3}", []string{"aa", "xaaay"}, []string{"a", "abab"}},
		{"^a{2,}$", []string{"aa", "aaaaa"}, []string{"a"}},
		{"^a{,3}$", []string{"a{,3}"}, []string{"aa"}},
		{"^x{$", []string{"x{"}, []string{"x"}},
		{`^\d\D\w\W\s\S$`, []string{"1aa- x"}, []string{"xaa- x", "1aa- \t"}},
		{"^.$", []string{"a", "é", "\U0001F600"}, []string{"\n", "", "ab"}},
		{"^[^]$", []string{"\n", "a"}, []string{""}},
		{"^[]$", nil, []string{"", "a"}},
		{`^[\w-.]+$`, []string{"a-.b"}, []string{"a/b"}},
		{`^[a\-z\]]+$`, []string{"a-z]"}, []string{"b"}},
		{`^[a-]$`, []string{"a", "-"}, []string{"b"}},
		{`^\u00e9\x41\t\cJ\0$`, []string{"éA\t\n\x00"}, []string{"eA\t\n\x00"}},
		{`^\u{1F600}\ud83d\ude00$`, []string{"\U0001F600\U0001F600"}, nil},
		{`^\p{Letter}+\P{L}\p{Script=Greek}\p{Lu}$`, []string{"aé1πA"}, []string{"a1ππ"}},
		{`\bfoo\b`, []string{"foo", "a foo b", "-foo-"}, []string{"afoo", "foob", "foo1"}},
		{`^a\Bb$`, []string{"ab"}, nil},
		{`^a\bb$`, nil, []string{"ab"}},
		{`(^|,)x(,|$)`, []string{"x", "a,x", "x,b", "a,x,b"}, []string{"ax", "xb"}},
		{`(a$|b)c`, []string{"bc"}, []string{"ac"}},
		{`^(?!foo|bar$)\w+$`, []string{"x", "barx", "fo"}, []string{"foo", "food", "bar", ""}},
		{`^(?=.*\d)(?=.*[a-z]).{3,}$`, []string{"a1x", "11a"}, []string{"abc", "123", "a1"}},
		{`^.*(?<!x)$`, []string{"ab", ""}, []string{"ax"}},
		{`(?=^.{3,6}$)(?!^\d+$)(^\w+$)`, []string{"abc", "1a2"}, []string{"123", "ab", "abcdefg"}},
		{`^(?!a)\w$|^aa$`, []string{"x", "b", "aa"}, []string{"a"}},
		{`^(?<year>\d{4})-(?:\d\d)$`, []string{"2024-01"}, []string{"2024-1"}},
		{`a*?b+?c??`, []string{"b", "aabbc"}, []string{"a"}},
		{`\/\-\.\_`, []string{"/-._"}, []string{"/-.x"}},
	}
	for _, test := range tests {
		d, err := compilePattern(unmetered(), test.pattern, 4096)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		outer, err := text{dfa: d.inner, wide: d.wide}.outer()
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range test.yes {
			if !d.inner.match(s) {
				t.Errorf("%s refuses %q", test.pattern, s)
			}
		}
		for _, s := range test.no {
			if outer.match(s) {
				t.Errorf("%s accepts %q", test.pattern, s)
			}
		}
	}
}

func TestPatternsRefused(t *testing.T) {
	tests := []struct{ pattern, err string }{
		{`(a)\1`, errBackReference.Error()},
		{`(?<x>a)\k<x>`, errBackReference.Error()},
		{`(?i)a`, errModifier.Error()},
		{`a(?=b)c`, errLookaround.Error()},
		{`(?!a)b`, errLookaround.Error()},
		{`^((?!a)b)*$`, errLookaround.Error()},
		{`^.*a.{20}$`, errStates.Error()},
		{`(((a{100}){100}){100}){100}`, errStates.Error()},
		{`a{99999999999999999999}`, errStates.Error()},
		{`a{2,1}`, "has the numbers of a repetition out of order"},
		{`[z-a]`, "has the range z-a, which is out of order"},
		{`*a`, `has '*' with nothing to repeat`},
		{`a**`, `has '*' with nothing to repeat`},
		{`^*`, "repeats an assertion"},
		{`(a`, "has a ( without its )"},
		{`a)`, "has a ) without its ("},
		{`[a`, "has a [ without its ]"},
		{`\`, `ends in a \`},
		{`\A`, `has \A, which is no escape`},
		{`\p{Nonsense}`, `has \p{Nonsense}, which is no known property`},
		{strings.Repeat("(", 1000) + strings.Repeat(")", 1000), "has groups nested too deep"},
		{`(?:){1000000000}`, errWork.Error()},
	}
	for _, test := range tests {
		_, err := compilePattern(&meter{left: 1_500_000}, test.pattern, 4096)
		if diff := cmp.Diff(test.err, errText(err)); diff != "" {
			t.Errorf("%s: %s", test.pattern, diff)
		}
	}
	if _, err := compilePattern(&meter{left: 100}, "^abc$", 4096); !errors.Is(err, errWork) {
		t.Errorf("without work: %v", err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestMinimal(t *testing.T) {
	tests := []struct {
		pattern string
		states  int
	}{
		{"", 1}, {"^$", 1}, {"a", 2}, {"^(?:abc|abd|xbc|xbd)$", 4}, {"^(?:a|aa|aaa)*$", 1},
		{"^(?:[ab]*a[ab])$", 4}, {`^\d{3}-\d{4}$`, 9},
	}
	for _, test := range tests {
		p, err := compilePattern(unmetered(), test.pattern, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.inner; len(d.States) != test.states {
			t.Errorf("%s has %d states, want %d", test.pattern, len(d.States), test.states)
		}
	}
}

// TestDialects has texts that match a pattern in some dialects of regular
// expressions alone: they are neither admitted nor taken for no match.
func TestDialects(t *testing.T) {
	tests := []struct {
		pattern string
		texts   []string
	}{
		{`^.$`, []string{"\r", "\u0085", "\u2028", "\u2029"}},
		{`^\s$`, []string{"\v", "\u00a0", "\ufeff", "\x1c"}},
		{`^\S$`, []string{"\v", "\u00a0"}},
		{`^\d$`, []string{"\u0661"}},
		{`^\w$`, []string{"é", "\u0661"}},
		{`^\W$`, []string{"é"}},
		{`^[^\d]$`, []string{"\u0661"}},
		{`^(?!\s$).$`, []string{"\u00a0"}},
	}
	for _, test := range tests {
		p, err := compilePattern(unmetered(), test.pattern, 4096)
		if err != nil {
			t.Fatal(err)
		}
		outer, err := text{dfa: p.inner, wide: p.wide}.outer()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range test.texts {
			if p.inner.match(s) || !outer.match(s) {
				t.Errorf("%s on %q: inner %v, outer %v", test.pattern, s, p.inner.match(s), outer.match(s))
			}
		}
	}
}

// TestCompileBounded finds the bounds on the length that are in a pattern.
func TestCompileBounded(t *testing.T) {
	type bounds struct{ least, most int }
	tests := []struct {
		pattern string
		want    bounds
		yes, no string // without the bounds
	}{
		{"^[a-z]{3,4000}$", bounds{3, 4000}, "a", "A"},
		{"^[a-z]{100,}$", bounds{100, Unbounded}, "", "1"},
		{"^[a-z]{3,9}$", bounds{0, Unbounded}, "abc", "ab"},
		{"[a-z]{3,4000}", bounds{0, Unbounded}, "1abc", "ab"},
		{`^(?=.{1,253}$)(?:[a-z]+\.)+[a-z]+$`, bounds{1, 253}, "a.b", "a"},
		{`^(?=[a-c]{1,253}$)a`, bounds{1, 253}, "abc", "abd"},
		{`^(?!.{9,253}$)a`, bounds{0, Unbounded}, "a", "aaaaaaaaaa"},
		{"^a|b$", bounds{0, Unbounded}, "ax", "xa"},
	}
	for _, test := range tests {
		p, least, most, err := compileBounded(unmetered(), test.pattern, 4096)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got := (bounds{least, most}); got != test.want {
			t.Errorf("%s: got %v, want %v", test.pattern, got, test.want)
		}
		if !p.inner.match(test.yes) || p.inner.match(test.no) {
			t.Errorf("%s: %q %v, %q %v", test.pattern, test.yes, p.inner.match(test.yes), test.no, p.inner.match(test.no))
		}
	}
}
