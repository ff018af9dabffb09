//go:build cgo

package libllama

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
)

// TestNoControlTokenFromRequests renders conversations that are full of a
// vocabulary's special texts through all templates, and tokenizes the prompts:
// no special token may hold a byte of the request.
func TestNoControlTokenFromRequests(t *testing.T) {
	m := loadVocabOnly(t, testModelPath(t, hybridModel))
	var texts []string
	for _, s := range m.tokenizer.all.list {
		texts = append(texts, s.text)
	}
	sources := testTemplates(t)
	for i, name := range slices.Sorted(maps.Keys(sources)) {
		c, err := newChatOf(sources[name], "", testBOS, testEOS, m.tokenizer.all)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(i), 3))
		literal := 0
		for range 10 {
			in := filled(random, texts)
			r, _, err := c.template.render(in)
			if err != nil {
				continue // some templates take no tools, or only certain turns
			}
			p, err := c.Render(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range p.Parts {
				if !part.Special {
					literal++
				}
			}
			checkSpecialTokens(t, m, name, r, tokenize(t, m, p.Parts))
		}
		if literal == 0 {
			t.Errorf("%s: nothing was tested", name)
		}
	}
}

// checkSpecialTokens tells where each token of a prompt comes from.
func checkSpecialTokens(t *testing.T, m *Model, name string, r *rendering, tokens []llama.Token) {
	t.Helper()
	at := 0
	for _, token := range tokens {
		piece := m.vocab.Piece(token)
		if !bytes.HasPrefix(r.prompt[at:], piece) {
			t.Fatalf("%s: token %d is %q where the prompt has %.40q", name, token, piece, r.prompt[at:])
		}
		kind := m.vocab.Kind(token)
		for i := range piece {
			if (kind == llama.KindControl || kind == llama.KindUser) && r.isInput(at+i) {
				t.Fatalf("%s: %q of the request became a special token in %.60q", name, piece, r.prompt[max(at-20, 0):])
			}
		}
		at += len(piece)
	}
	if at != len(r.prompt) {
		t.Fatalf("%s: the tokens end at %d of %d bytes", name, at, len(r.prompt))
	}
}

// TestPromptTokensAreLlamaCpps compares tokens of prompts without special texts of the
// request with those that llama.cpp makes of the whole.
func TestPromptTokensAreLlamaCpps(t *testing.T) {
	m := loadVocabOnly(t, testModelPath(t, hybridModel))
	sources := testTemplates(t)
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		c, err := newChatOf(sources[name], "", testBOS, testEOS, m.tokenizer.all)
		if err != nil {
			t.Fatal(err)
		}
		for _, conversation := range testConversations(t) {
			p, err := c.Render(conversation.input(t))
			if err != nil || slices.ContainsFunc(p.Parts, func(p llama.Part) bool { return !p.Special }) {
				continue
			}
			want, err := m.tokenizer.start(nil).raw(nil, []byte(joinParts(p.Parts)), true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, tokenize(t, m, p.Parts)); diff != "" {
				t.Errorf("%s, %s: %s", name, conversation.Name, diff)
			}
			compared++
		}
	}
	if compared < 40*len(sources) {
		t.Errorf("only %d prompts compared", compared)
	}
}
