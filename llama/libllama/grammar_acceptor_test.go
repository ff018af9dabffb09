//go:build cgo

package libllama

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/grammar/grammartest"
)

// An acceptorCase is a grammar that package grammar has read or made, with texts
// that it says the grammar has, or does not have.
type acceptorCase struct {
	Name, GBNF        string
	Invalid           bool // package grammar refuses it
	Loops             bool // it may repeat what may be empty, without end
	Admitted, Refused []string
}

// llamaTakes are grammars that package grammar refuses and llama.cpp takes: an empty
// one is none for it, and where no text can match it lets nothing pass.
var llamaTakes = map[string]bool{
	"":                    true,
	"root ::= [z-a]":      true,
	`root ::= "\ud800"`:   true,
	"root ::= \"a\" root": true,
}

// TestGrammarsAsLlamaReads holds package grammar's GBNF, read and printed, against
// llama.cpp: it takes the same grammars, and they have the same texts. Its mask
// refuses more, where a byte of a longer character begins one that a class excludes.
// It takes endless repetitions of what may be empty for left recursion, mostly.
func TestGrammarsAsLlamaReads(t *testing.T) {
	var cases []acceptorCase
	grammartest.ReadJSON(t, filepath.Join("..", "..", "grammar", "testdata", "gbnf", "acceptor.json.gz"), &cases)
	if len(cases) < 200 {
		t.Fatalf("only %d grammars", len(cases))
	}
	checkSampleGrammars(t, cases)
	model := loadVocabOnly(t, vocabPath(t, "qwen2"))
	count := map[string]int{}
	for _, c := range cases {
		texts := append(slices.Concat(c.Admitted, c.Refused), "")
		verdicts, err := model.readWithGrammar(c.GBNF, texts, time.Second/2)
		if err != nil && !errors.Is(err, errGrammar) {
			t.Fatal(err)
		}
		if c.Invalid {
			if (err == nil) != llamaTakes[c.GBNF] {
				t.Errorf("%s: %v from llama.cpp for\n%.2000s", c.Name, err, c.GBNF)
			}
			count["invalid grammars"]++
			continue
		}
		if err != nil && c.Loops && strings.Contains(err.Error(), "left recursion") {
			count["grammars that loop"]++
			continue
		}
		if err != nil {
			t.Errorf("%s: %v\n%.2000s", c.Name, err, c.GBNF)
			continue
		}
		count["grammars"]++
		for i, text := range texts[:len(texts)-1] {
			admitted := i < len(c.Admitted)
			count[verdicts[i].String()]++
			accepted := verdicts[i] == textAccepted || verdicts[i] == textMasked
			if verdicts[i] != textLate && accepted != admitted {
				t.Errorf("%s: %q: admitted %v, llama.cpp: %v\n%.2000s", c.Name, text, admitted, verdicts[i], c.GBNF)
			}
		}
	}
	t.Log(count)
	if late := count[textLate.String()]; late > 20 {
		t.Errorf("%d texts take llama.cpp too long", late)
	}
}

// checkSampleGrammars wants all sample grammars of llama.cpp among the cases.
func checkSampleGrammars(t *testing.T, cases []acceptorCase) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(vocabPath(t, ""))), "grammars", "*.gbnf"))
	if err != nil || len(files) == 0 {
		t.Error("llama.cpp's sample grammars are not there", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(cases, func(c acceptorCase) bool { return c.GBNF == string(text) && len(c.Admitted) > 0 }) {
			t.Errorf("%s is not tried", filepath.Base(file))
		}
	}
}
