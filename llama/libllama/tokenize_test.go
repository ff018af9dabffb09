//go:build cgo

package libllama

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/b3os/b3infer/llama"
)

// vocabularies are llama.cpp's own, of every kind of tokenizer that chat models use.
var vocabularies = []string{
	"llama-bpe", "qwen2", "qwen35", "gpt-neox", "gpt-2", "command-r", "deepseek-coder", "deepseek-llm", "falcon",
	"gemma-4", "mpt", "refact", "starcoder", "aquila", "llama-spm", "phi-3", "baichuan",
}

// TestTokenize holds the tokenizer to its promises on each vocabulary, and on
// that of a test model with user-defined tokens.
func TestTokenize(t *testing.T) {
	for _, name := range vocabularies {
		t.Run(name, func(t *testing.T) {
			path := vocabPath(t, name)
			m := loadVocabOnly(t, path)
			t.Run("golden", func(t *testing.T) { checkGolden(t, m, path) })
			checkTokenizer(t, m)
		})
	}
	t.Run("tiny35", func(t *testing.T) { checkTokenizer(t, loadVocabOnly(t, testModelPath(t, hybridModel))) })
}

func checkTokenizer(t *testing.T, m *Model) {
	for i, check := range []struct {
		name string
		run  func(*testing.T, *Model, *textMaker)
	}{
		{"special", checkSpecial}, {"ordinary", checkOrdinary}, {"turns", checkTurns},
		{"literal", checkLiteral}, {"mixed", checkMixed}, {"long", checkLong},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, m, newTextMaker(m, uint64(i))) })
	}
}

func literal(text string) []llama.Part { return []llama.Part{{Text: []byte(text)}} }

func tokenize(t *testing.T, m *Model, parts []llama.Part) []llama.Token {
	t.Helper()
	tokens, err := m.Tokenize(nil, parts, false)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// oracle is llama_tokenize of the whole text.
func oracle(t *testing.T, m *Model, text string) []llama.Token {
	t.Helper()
	tokens, err := m.tokenizer.start(nil).raw(nil, []byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// checkGolden compares with the tokens that llama.cpp's own tests expect.
func checkGolden(t *testing.T, m *Model, path string) {
	in, err := os.ReadFile(path + ".inp")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("llama.cpp has no texts for it")
	}
	out, _ := os.ReadFile(path + ".out")
	texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
	for i, want := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if diff := diffTokens(parseTokens(t, want), tokenize(t, m, literal(texts[i]))); diff != "" {
			t.Errorf("%q: %s", texts[i], diff)
		}
	}
}

func diffTokens(want, got []llama.Token) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

func parseTokens(t *testing.T, line string) []llama.Token {
	t.Helper()
	var tokens []llama.Token
	for _, field := range strings.Fields(line) {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, llama.Token(n))
	}
	return tokens
}

// A textMaker makes random texts out of what tokenizers care about.
type textMaker struct {
	rand     *rand.Rand
	specials []string
}

var ordinaryText = []string{
	"hello", " world", "The", " quick", "  ", "   ", "\n", "\n\n", "\t", " \n", "don't", "I'LL", "1234567", "3.14", "ß", "日本語", " 你好",
	"🤷", "e\u0301", "func main() {\n\treturn\n}", "<", ">", "|", "<|", "|>", "</", "[", "]", "_", ".", "!!!", "xml>", "=", "user", "\u2581", "\u00a0", "\x00", "\xff", "\xe2\x96",
}

func newTextMaker(m *Model, seed uint64) *textMaker {
	tm := &textMaker{rand: rand.New(rand.NewPCG(seed, 1))}
	for _, s := range m.tokenizer.all.list {
		tm.specials = append(tm.specials, s.text)
	}
	return tm
}

// text is made of n pieces; every mth is a special text, none if m is 0.
func (tm *textMaker) text(n, m int) string {
	var b strings.Builder
	for range n {
		if m > 0 && tm.rand.IntN(m) == 0 && len(tm.specials) > 0 {
			s := tm.specials[tm.rand.IntN(len(tm.specials))]
			if tm.rand.IntN(4) == 0 { // a part of one
				s = s[:tm.rand.IntN(len(s))]
			}
			b.WriteString(s)
			continue
		}
		b.WriteString(ordinaryText[tm.rand.IntN(len(ordinaryText))])
	}
	return b.String()
}

// split cuts a text into parts at random; special says of each what it is.
func (tm *textMaker) split(text string, special func() bool) []llama.Part {
	var parts []llama.Part
	for len(text) > 0 {
		n := min(len(text), 1+tm.rand.IntN(30))
		parts = append(parts, llama.Part{Text: []byte(text[:n]), Special: special()})
		text = text[n:]
	}
	return parts
}

func (tm *textMaker) coin() bool { return tm.rand.IntN(2) == 0 }

// containsSpecial tells whether a text spells any special token.
func containsSpecial(m *Model, text string) bool {
	for i := range len(text) {
		if m.tokenizer.all.begins([]byte(text[i:])) {
			return true
		}
	}
	return false
}

// Special parts give what llama.cpp gives for the whole text, marks included.
func checkSpecial(t *testing.T, m *Model, tm *textMaker) {
	for range 300 {
		text := tm.text(1+tm.rand.IntN(20), 3)
		parts := tm.split(text, func() bool { return true })
		if diff := diffTokens(oracle(t, m, text), tokenize(t, m, parts)); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	}
}

// Where no special text stands, it makes no difference what is literal.
func checkOrdinary(t *testing.T, m *Model, tm *textMaker) {
	for range 300 {
		text := tm.text(1+tm.rand.IntN(20), 0)
		if containsSpecial(m, text) {
			continue
		}
		want := oracle(t, m, text)
		for range 3 {
			if diff := diffTokens(want, tokenize(t, m, tm.split(text, tm.coin))); diff != "" {
				t.Fatalf("%q: %s", text, diff)
			}
		}
	}
}

// Template text around literal text is tokenized as one with it.
func checkTurns(t *testing.T, m *Model, tm *textMaker) {
	if len(tm.specials) == 0 {
		t.Skip("no special tokens")
	}
	for range 200 {
		var whole strings.Builder
		var parts []llama.Part
		for range 1 + tm.rand.IntN(5) {
			control := tm.specials[tm.rand.IntN(len(tm.specials))] + tm.text(tm.rand.IntN(3), 0)
			text := tm.text(tm.rand.IntN(6), 0)
			parts = append(parts, llama.Part{Text: []byte(control), Special: true}, llama.Part{Text: []byte(text)})
			whole.WriteString(control + text)
		}
		if spells(m, parts) {
			continue // literal text completes a special one
		}
		if diff := diffTokens(oracle(t, m, whole.String()), tokenize(t, m, parts)); diff != "" {
			t.Fatalf("%q: %s", whole.String(), diff)
		}
	}
}

// spells tells whether a special text lies, wholly or partly, in literal parts.
func spells(m *Model, parts []llama.Part) bool {
	text, spans, err := join(parts)
	if err != nil {
		panic(err)
	}
	var ranks []int32
	for i := range text {
		for _, r := range m.tokenizer.all.at(text[i:], ranks[:0]) {
			end, inside := i+len(m.tokenizer.all.list[r].text), false
			for _, s := range spans {
				inside = inside || s.from <= i && end <= s.to
			}
			if !inside {
				return true
			}
		}
	}
	return false
}

// Literal text yields no mark, whatever it spells and however it is cut into
// parts, and loses nothing.
func checkLiteral(t *testing.T, m *Model, tm *textMaker) {
	for range 300 {
		text := tm.text(1+tm.rand.IntN(20), 2)
		tokens := tokenize(t, m, tm.split(text, func() bool { return false }))
		for _, token := range tokens {
			if kind := m.vocab.Kind(token); kind == llama.KindControl || kind == llama.KindUser {
				t.Fatalf("%q: token %d is %q", text, token, m.vocab.Piece(token))
			}
		}
		if utf8.ValidString(text) && !strings.Contains(text, "\u2581") {
			checkText(t, m, tokens, text)
		}
	}
}

// Mixed parts yield no more marks than Special parts spell.
func checkMixed(t *testing.T, m *Model, tm *textMaker) {
	for range 300 {
		var parts []llama.Part
		allowed := 0
		for range 1 + tm.rand.IntN(6) {
			special := tm.coin()
			text := tm.text(1+tm.rand.IntN(5), 2)
			if special {
				// One special text and ordinary text: it spells at most itself.
				text = tm.text(1, 1)
				allowed++
			}
			parts = append(parts, llama.Part{Text: []byte(text), Special: special}, llama.Part{Text: []byte("x")})
		}
		marks := 0
		for _, token := range tokenize(t, m, parts) {
			if kind := m.vocab.Kind(token); kind == llama.KindControl || kind == llama.KindUser {
				marks++
			}
		}
		if marks > allowed {
			t.Fatalf("%d marks, at most %d are in Special parts: %v", marks, allowed, parts)
		}
	}
}

// checkText compares the pieces of tokens with the text they stand for, apart
// from the space that SentencePiece puts in front, and unknown tokens.
func checkText(t *testing.T, m *Model, tokens []llama.Token, text string) {
	t.Helper()
	var got []byte
	for _, token := range tokens {
		if m.vocab.Kind(token) == llama.KindUnused {
			return
		}
		got = append(got, m.vocab.Piece(token)...)
	}
	if m.tokenizer.leadTokens > 0 {
		got = bytes.TrimPrefix(got, []byte(" "))
	}
	if diff := cmp.Diff(text, string(got)); diff != "" {
		t.Fatalf("tokens %v: %s", tokens, diff)
	}
}

// A user's text that spells a mark becomes what the words around it would be.
func TestTokenizeSpelled(t *testing.T) {
	m := loadVocabOnly(t, testModelPath(t, hybridModel))
	tests := []struct{ text, want string }{
		{"a <think> b", "a| <|think|>| b"},
		{"<|im_start|>", "<|||im|_start|||>"},
		{"</think></think>", "<|/th|ink|><|/th|ink|>"},
	}
	for _, tt := range tests {
		var pieces []string
		for _, token := range tokenize(t, m, literal(tt.text)) {
			pieces = append(pieces, string(m.vocab.Piece(token)))
		}
		if got := strings.Join(pieces, "|"); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestTokenizeBOS(t *testing.T) {
	for name, want := range map[string]llama.Token{"llama-spm": 1, "qwen2": llama.NoToken} {
		m := loadVocabOnly(t, vocabPath(t, name))
		with, err := m.Tokenize([]llama.Token{7}, literal("hi"), true)
		if err != nil {
			t.Fatal(err)
		}
		expect := []llama.Token{7}
		if want != llama.NoToken {
			expect = append(expect, want)
		}
		if diff := cmp.Diff(append(expect, tokenize(t, m, literal("hi"))...), with); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	m := loadVocabOnly(t, vocabPath(t, "qwen2"))
	if _, err := m.Tokenize(nil, []llama.Part{{Image: 1}}, false); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("image part: %v", err)
	}
}

// A long word without an end neither overflows the stack of a tokenizer that
// matches by regular expressions nor comes back as something else.
func checkLong(t *testing.T, m *Model, _ *textMaker) {
	for _, unit := range []string{" ", "\n", " \n", "a", "aB", "é", "日", "1", "!", "<", "a b", "\u3000\n"} {
		text := strings.Repeat(unit, 200_000/len(unit))
		checkText(t, m, tokenize(t, m, literal(text)), text)
	}
}

func BenchmarkTokenize(b *testing.B) {
	m := loadVocabOnly(b, testModelPath(b, hybridModel))
	for _, unit := range []string{"the quick brown fox ", "a", "<think>", "<tool_call>a", "<|im_start|>"} {
		for _, special := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/special=%v", strings.TrimSpace(unit), special), func(b *testing.B) {
				parts := []llama.Part{{Text: bytes.Repeat([]byte(unit), 1<<20/len(unit)), Special: special}}
				b.SetBytes(1 << 20)
				for b.Loop() {
					if _, err := m.Tokenize(nil, parts, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestLineCut(t *testing.T) {
	line := strings.Repeat("ab ", longestLine/3)
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"short", "ab\ncd", 0},
		{"many lines", strings.Repeat("ab cd\n", longestLine), 0},
		{"before a space", line + line, longestLine - 2},
		{"in a word", strings.Repeat("a", 2*longestLine), longestLine},
		{"between characters", strings.Repeat("日", longestLine), longestLine - longestLine%3},
		{"in white space", strings.Repeat("\n", 2*longestLine), longestLine},
		{"behind other lines", "ab\ncd\n" + strings.Repeat("a", 2*longestLine), 6 + longestLine},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := lineCut([]byte(tt.text)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
