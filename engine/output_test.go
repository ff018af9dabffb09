package engine

import (
	"testing"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

// thinkingEnvelope is a template's in whose answers a thought in <think> may come first.
func thinkingEnvelope(t *testing.T) *grammar.Envelope {
	t.Helper()
	parser := `{"parsers":[{"type":"literal","literal":"<think>"},{"type":"until","delimiters":["</think>"]},{"type":"tag","tag":"reasoning","child":1},` +
		`{"type":"literal","literal":"</think>"},{"type":"sequence","children":[0,2,3]},{"type":"repetition","child":4,"min_count":0,"max_count":1},` +
		`{"type":"until","delimiters":[]},{"type":"tag","tag":"content","child":6},{"type":"end"},{"type":"sequence","children":[5,7,8]}],"root":9,"rules":{}}`
	envelope, err := grammar.ParseEnvelope([]byte(parser), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func TestOutput(t *testing.T) {
	vocab := llama.NewVocab([]llama.VocabToken{
		0: {Piece: []byte("a")},
		1: {Piece: []byte("b ")},
		2: {Piece: []byte("\xc3"), Kind: llama.KindByte},
		3: {Piece: []byte("\xa9"), Kind: llama.KindByte},
		4: {Piece: []byte("<mark>"), Kind: llama.KindControl},
		5: {Piece: []byte("<call>"), Kind: llama.KindControl},
		6: {Piece: []byte("[PAD]"), Kind: llama.KindUnused},
		7: {Piece: []byte("<think>"), Kind: llama.KindControl},
		8: {Piece: []byte("</think>"), Kind: llama.KindUser},
		9: {Piece: []byte("<end>"), Kind: llama.KindControl, End: true},
	}, llama.NoToken)
	prompt := llama.Prompt{Preserved: []string{"<call>"}, ThinkStart: "<think>", ThinkEnd: []string{"</think>"}, Stops: []string{"<eom>", "aab"}}
	envelope := thinkingEnvelope(t)
	prepared := func(stops []string) *Prepared {
		return &Prepared{prompt: prompt, stops: stops, top: -1, form: form{envelope: envelope, texts: answerTexts(&prompt)}}
	}
	tests := []struct {
		name   string
		stops  []string
		tokens []llama.Token
		want   []Event
		usage  [2]int // answer and reasoning tokens
	}{
		{"text", nil, []llama.Token{0, 1, 0}, []Event{Text{Text: "ab a"}}, [2]int{3, 0}},
		{"character of two tokens", nil, []llama.Token{0, 2, 3}, []Event{Text{Text: "aé"}}, [2]int{3, 0}},
		{"control text is none", nil, []llama.Token{0, 4, 6, 0, 9}, []Event{Text{Text: "aa"}}, [2]int{5, 0}},
		{"control text with a meaning", nil, []llama.Token{0, 5}, []Event{Text{Text: "a<call>"}}, [2]int{2, 0}},
		{"reasoning", nil, []llama.Token{7, 1, 0, 8, 1}, []Event{Text{Text: "b a", Reasoning: true}, Text{Text: "b "}}, [2]int{5, 4}},
		{"the template's stop text", nil, []llama.Token{1, 0, 0, 1, 0}, []Event{Text{Text: "b "}}, [2]int{4, 0}},
		{"the client's stop text", []string{"b "}, []llama.Token{0, 1, 0, 0}, []Event{Text{Text: "a"}}, [2]int{2, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// All at once and one by one give the same.
			whole := newOutput(vocab, prepared(tt.stops))
			events := whole.close(whole.push(nil, delivery{tokens: tt.tokens}), false)
			single := newOutput(vocab, prepared(tt.stops))
			var pieces []Event
			for i := range tt.tokens {
				pieces = single.push(pieces, delivery{tokens: tt.tokens[i : i+1]})
			}
			pieces = single.close(pieces, false)
			for _, got := range [][]Event{events, pieces} {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
			if got := [2]int{whole.answer, whole.reasoning}; got != tt.usage {
				t.Errorf("counted %v tokens, want %v", got, tt.usage)
			}
		})
	}
}
