package grammar

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plainDecimal generates plain decimals, close together and in many spellings.
var plainDecimal = rapid.Custom(func(t *rapid.T) string {
	s := rapid.SampledFrom([]string{"0", "1", "9", "10", "12", "19", "99", "100", "101", "120"}).Draw(t, "int")
	if f := rapid.SampledFrom([]string{"", "0", "5", "50", "49", "05", "001", "9", "000"}).Draw(t, "frac"); f != "" {
		s += "." + f
	}
	if rapid.Bool().Draw(t, "neg") && strings.Trim(s, "0.") != "" {
		s = "-" + s
	}
	return s
})

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

func mustDecimal(s string) decimal {
	d, err := parseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestComparison(t *testing.T) {
	wants := map[string]func(int) bool{
		"<": func(s int) bool { return s < 0 }, "<=": func(s int) bool { return s <= 0 },
		"=": func(s int) bool { return s == 0 },
		">": func(s int) bool { return s > 0 }, ">=": func(s int) bool { return s >= 0 },
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := plainDecimal.Draw(t, "x"), plainDecimal.Draw(t, "y")
		op := rapid.SampledFrom([]string{"<", "<=", "=", ">", ">="}).Draw(t, "op")
		d := mustDFA(comparison(unmetered(), mustDecimal(y), wants[op]))
		if got, want := d.match(x), wants[op](rat(x).Cmp(rat(y))); got != want {
			t.Fatalf("%s %s %s: got %v", x, op, y, got)
		}
	})
}

func TestMultiples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := plainDecimal.Draw(t, "x"), plainDecimal.Draw(t, "y")
		y = strings.TrimPrefix(y, "-")
		if rat(y).Sign() == 0 {
			return
		}
		d, err := multiples(unmetered(), mustDecimal(y), 1<<20)
		if errors.Is(err, errStates) {
			return
		}
		if got, want := d.match(x), new(big.Rat).Quo(rat(x), rat(y)).IsInt(); got != want {
			t.Fatalf("%s multiple of %s: got %v", x, y, got)
		}
	})
}

func TestLiteralNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := plainDecimal.Draw(t, "x")
		var ds []decimal
		want := false
		for _, y := range rapid.SliceOfN(plainDecimal, 0, 8).Draw(t, "ys") {
			ds = append(ds, mustDecimal(y))
			want = want || rat(x).Cmp(rat(y)) == 0
		}
		d := mustDFA(literalNumbers(unmetered(), ds, 4096))
		if got := d.match(x); got != want {
			t.Fatalf("%s in %v: got %v", x, ds, got)
		}
	})
}

func TestParseDecimal(t *testing.T) {
	tests := []struct{ text, want string }{
		{"0", "0"}, {"-0", "0"}, {"-0.00", "0"}, {"1.50", "1.5"}, {"-2.0", "-2"}, {"1e3", "1000"}, {"12E-3", "0.012"},
		{"1.25e1", "12.5"}, {"0.0001", "0.0001"}, {"1e-08", "0.00000001"},
		{"1e308", "1" + strings.Repeat("0", 308)}, {"1e401", errDecimalSize.Error()}, {"1e99999999999999999999", errDecimalSize.Error()},
	}
	for _, test := range tests {
		got, err := parseDecimal(test.text)
		s := got.String()
		if err != nil {
			s = err.Error()
		}
		if s != test.want {
			t.Errorf("%s: got %s, want %s", test.text, s, test.want)
		}
	}
}

func TestSpellNumbers(t *testing.T) {
	between := func(lo, hi string) *DFA {
		a := mustDFA(comparison(unmetered(), mustDecimal(lo), func(s int) bool { return s >= 0 }))
		b := mustDFA(comparison(unmetered(), mustDecimal(hi), func(s int) bool { return s <= 0 }))
		return mustDFA(combine(unmetered(), a, b, opAnd, 4096))
	}
	whole := func(d *DFA) *DFA { return mustDFA(combine(unmetered(), d, integers(), opAnd, 4096)) }
	tests := []struct {
		name    string
		set     *DFA
		yes, no []string
	}{
		{"few", mustDFA(literalNumbers(unmetered(), []decimal{mustDecimal("1"), mustDecimal("-2.50")}, 99)),
			[]string{"1", "-2.5"}, []string{"1.0", "-2.50", "2", ""}},
		{"integers in a range", whole(between("-3", "1200")), []string{"-3", "0", "999", "1200"}, []string{"-4", "1201", "1.0", "-0", "01"}},
		{"numbers in a range", between("-1", "1.5"), []string{"-1", "-1.0", "0.123", "1.50", "1.49999"}, []string{"1.51", "1e0", "-0", "-0.0", "-1.01"}},
		{"all", plainNumbers(), []string{"0", "-0", "1.50", "1e5", "-1.5E-10"}, []string{"1e999", "+1", "01", "1.", ".5", strings.Repeat("9", 19)}},
		{"all integers", integers(), []string{"0", "-7", strings.Repeat("9", 18)}, []string{"-0", "1.0", "1e2", strings.Repeat("9", 19)}},
		{"great", whole(between("1"+strings.Repeat("0", 20), "9"+strings.Repeat("0", 20))), []string{"1" + strings.Repeat("0", 20)}, []string{"1"}},
	}
	for _, test := range tests {
		d := mustDFA(spellNumbers(unmetered(), test.set, spellFreely, 65536))
		got := map[string]bool{}
		want := map[string]bool{}
		for _, s := range test.yes {
			got[s], want[s] = d.match(s), true
		}
		for _, s := range test.no {
			got[s], want[s] = d.match(s), false
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	if AnyNumber() != mustDFA(spellNumbers(unmetered(), plainNumbers(), spellFreely, 99)) {
		t.Error("all numbers are not AnyNumber")
	}
}

func TestSpellStrings(t *testing.T) {
	d := mustDFA(spellStrings(unmetered(), compileLexeme(`a[^b]\n?`), 999))
	got := map[string]bool{}
	want := map[string]bool{`"a\n"`: true, `"a\"\n"`: true, `"a\\"`: true, `"aé"`: true, `"a\u0001"`: true,
		`"ab"`: false, `"a\u0061"`: false, `"a\/"`: false, "\"a\n\"": false, `"a""`: false, `a"`: false}
	for s := range want {
		got[s] = d.match(s)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(AnyString().States); n != 9 {
		t.Errorf("AnyString has %d states", n)
	}
	for _, s := range []string{"a", `\n`, `\u001f`, `é`} {
		if !AnyChar().match(s) || AnyChar().match(s+s) || !AnyString().match(`"`+s+s+`"`) {
			t.Errorf("AnyChar and AnyString on %s", s)
		}
	}
}

func TestCompact(t *testing.T) {
	got, err := Compact([]byte(" { \"b\" : [ 1.50 , -0e1 ], \"\\u0061\" : \"\\u00e9\\/\\n\\u007f\\ud83d\\ude00\" , \"c\" : [ null,true , false,{},[] ] }\n"))
	want := "{\"b\":[1.50,-0e1],\"a\":\"é/\\n\u007f\U0001F600\",\"c\":[null,true,false,{},[]]}"
	if fmt.Sprint(string(got), err) != fmt.Sprint(want, nil) {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	for _, bad := range []string{"", "{", `{"a":1,"a":2}`, `"\ud800"`, `"\ud800\u0041"`, "[1,]", "01", "1.", "nul", `"` + "\xff" + `"`, "1 2", "\"\n\"",
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001)} {
		if got, err := Compact([]byte(bad)); err == nil {
			t.Errorf("%s: got %s", bad, got)
		}
	}
}
