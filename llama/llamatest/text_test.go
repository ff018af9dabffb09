package llamatest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
)

func TestVocabulary(t *testing.T) {
	v := llamatest.New(llamatest.Options{VocabSize: 700}).Vocab()
	if v.Len() != 700 || v.BOS() != llama.NoToken {
		t.Errorf("%d tokens, BOS %d", v.Len(), v.BOS())
	}
	for b := range 256 {
		if got := v.Piece(llama.Token(b)); !bytes.Equal(got, []byte{byte(b)}) {
			t.Errorf("token %d is %q", b, got)
		}
	}
	special := make(map[string]llama.Kind)
	seen := make(map[string]bool)
	for id := range v.Len() {
		piece, kind := string(v.Piece(llama.Token(id))), v.Kind(llama.Token(id))
		switch {
		case kind == llama.KindControl || kind == llama.KindUser:
			special[piece] = kind
		case kind != llama.KindUnused && len(piece) > 1 && strings.Contains(piece, "<"):
			t.Errorf("%q could swallow the start of a special token", piece)
		}
		if kind != llama.KindUnused && seen[piece] {
			t.Errorf("%q is there twice", piece)
		}
		seen[piece] = true
	}
	if special["<|im_end|>"] != llama.KindControl || special["<think>"] != llama.KindUser {
		t.Errorf("special tokens: %v", special)
	}
}

func TestTokenize(t *testing.T) {
	d := newDriver(t, llamatest.Options{})
	for _, tt := range []struct {
		text   string
		pieces []string
	}{
		{"the water", []string{"th", "e", " water"}},
		{"é😀", []string{"\xc3", "\xa9", "😀"}},
		{"😁", []string{"\xf0\x9f\x98", "\x81"}},
		{"<think>\n\nok</think>", []string{"<think>", "\n\n", "o", "k", "</think>"}},
		{"<thin<think>", []string{"<", "th", "in", "<think>"}},
	} {
		var got []string
		for _, token := range d.tokens(tt.text) {
			got = append(got, string(d.model.Vocab().Piece(token)))
		}
		if diff := cmp.Diff(tt.pieces, got); diff != "" {
			t.Errorf("%q:\n%s", tt.text, diff)
		}
	}
}

func TestScript(t *testing.T) {
	answers := map[string]string{
		"hi":     "Hello wörld, 世界 😀😁!\n",
		"empty":  "",
		"think":  "so\n</think>\n\nthus",
		"call":   `<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`,
		"marks":  "a<|im_start|>b<|im_start|>assistant",
		"closed": "<think>again</think>",
	}
	var prompts []string
	options := llamatest.Options{Script: func(prompt string) (string, bool) {
		prompts = append(prompts, prompt)
		_, turn, _ := strings.Cut(prompt, "user\n")
		ask, _, _ := strings.Cut(turn, "<|im_end|>")
		answer, ok := answers[ask]
		return answer, ok
	}}
	for ask, want := range answers {
		for _, thinking := range []bool{false, true} {
			d := newDriver(t, options)
			prompt := "<|im_start|>user\n" + ask + "<|im_end|>\n<|im_start|>assistant\n<think>\n"
			if !thinking {
				prompt += "\n</think>\n\n"
			}
			prompts = prompts[:0]
			answer := d.answer(0, d.tokens(prompt), 200, llama.Sampling{Temperature: 1, TopP: 1}, 3)
			end := answer[len(answer)-1]
			if got := d.text(answer[:len(answer)-1]); got != want || d.text([]llama.Token{end}) != "<|im_end|>" {
				t.Errorf("%s, thinking %v: said %q and %q, want %q", ask, thinking, got, d.text([]llama.Token{end}), want)
			}
			if got := prompts[len(prompts)-1]; ask != "marks" && got != prompt {
				t.Errorf("%s: the script was asked for %q, want %q", ask, got, prompt)
			}
		}
	}
}

func TestScriptLeft(t *testing.T) {
	script := func(prompt string) (string, bool) { return "abc", strings.Contains(prompt, "known") }
	d := newDriver(t, llamatest.Options{Script: script})
	with := func(prompt, answer string) llama.Token {
		d.check(d.ctx.SeqRemove(0, -1, -1))
		return d.next(0, d.tokens("<|im_start|>user\n"+prompt+"<|im_end|>\n<|im_start|>assistant\n"+answer)...)
	}
	free := llamatest.New(llamatest.Options{})
	for _, tt := range []struct{ prompt, answer, want string }{
		{"known", "", "a"}, {"known", "ab", "c"}, {"known", "abc", "<|im_end|>"}, {"known", "<think>\na", "b"},
		{"known", "x", ""}, {"known", "abcd", ""}, {"other", "a", ""},
	} {
		got := with(tt.prompt, tt.answer)
		want := free.TrueOutput(d.ctx.Tokens(0), 1, llama.Sampling{TopP: 1}, 0)[0]
		if tt.want != "" {
			want = d.tokens(tt.want)[0]
		}
		if got != want {
			t.Errorf("%s, %q: said %d, want %d", tt.prompt, tt.answer, got, want)
		}
	}
	if got, want := d.next(1, d.tokens("known")...), free.TrueOutput(d.tokens("known"), 1, llama.Sampling{TopP: 1}, 0)[0]; got != want {
		t.Errorf("without a turn: said %d, want %d", got, want)
	}
}

func say(role, text string) llama.ChatMessage {
	return llama.ChatMessage{Role: role, Content: []llama.ChatPart{{Text: text}}}
}

func TestChat(t *testing.T) {
	call := llama.ChatMessage{
		Role: "assistant", Reasoning: "A sum.",
		Calls: []llama.ChatCall{{ID: "1", Name: "add", Arguments: `{"a": 1, "b": 1}`}},
	}
	bob, result := say("user", "1 + 1?"), say("tool", "2")
	bob.Name, result.ToolCallID = "Bob", "1"
	tools := []llama.ChatTool{{Name: "add", Description: "Adds."}}
	const system = "<|im_start|>system\nBe brief."
	const listed = "\n\n<tools>\n" + `{"name": "add", "description": "Adds.", "parameters": {}}` + "\n</tools><|im_end|>\n"
	const asked = "<|im_start|>user name=Bob\n1 + 1?<|im_end|>\n"
	const called = `<tool_call>{"name": "add", "arguments": {"a": 1, "b": 1}}</tool_call><|im_end|>` + "\n<|im_start|>tool call_id=1\n2<|im_end|>\n"
	tests := []struct {
		name string
		in   llama.ChatInput
		want string
	}{
		{"calls", llama.ChatInput{Messages: []llama.ChatMessage{say("system", "Be brief."), bob, call, result}, Tools: tools, Thinking: true},
			system + listed + asked + "<|im_start|>assistant\n<think>\nA sum.\n</think>\n\n" + called + "<|im_start|>assistant\n<think>\n"},
		{"old reasoning", llama.ChatInput{Messages: []llama.ChatMessage{bob, call, result, say("user", "So?")}},
			asked + "<|im_start|>assistant\n" + called + "<|im_start|>user\nSo?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		{"tools alone", llama.ChatInput{Messages: []llama.ChatMessage{bob}, Tools: tools, NoGenerationPrompt: true},
			"<|im_start|>system\n" + listed + asked},
		{"later system turns", llama.ChatInput{Messages: []llama.ChatMessage{bob, say("developer", "Now in French.")}, NoGenerationPrompt: true},
			asked + "<|im_start|>system\nNow in French.<|im_end|>\n"},
		{"image", llama.ChatInput{Messages: []llama.ChatMessage{{Role: "user", Content: []llama.ChatPart{{Text: "See "}, {Image: 1}}}}, NoGenerationPrompt: true},
			"<|im_start|>user\nSee <|vision_start|><|vision_end|><|im_end|>\n"},
	}
	for _, tt := range tests {
		p := render(t, llamatest.Options{}, tt.in)
		var got strings.Builder
		for _, part := range p.Parts {
			got.Write(part.Text)
		}
		if diff := cmp.Diff(tt.want, got.String()); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func render(t *testing.T, o llamatest.Options, in llama.ChatInput) llama.Prompt {
	t.Helper()
	chat, err := llamatest.New(o).NewChat(llama.ChatParams{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := chat.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestChatParts(t *testing.T) {
	got := render(t, llamatest.Options{}, llama.ChatInput{Messages: []llama.ChatMessage{
		{Role: "user", Content: []llama.ChatPart{{Text: "a<|im_end|>"}, {Text: "b"}, {Image: 2}}},
	}})
	want := llama.Prompt{
		Parts: []llama.Part{
			{Text: []byte("<|im_start|>user\n"), Special: true}, {Text: []byte("a<|im_end|>b")},
			{Text: []byte("<|vision_start|>"), Special: true}, {Image: 2},
			{Text: []byte("<|vision_end|><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"), Special: true},
		},
		Generation: "<|im_start|>assistant\n<think>\n\n</think>\n\n",
		ThinkStart: "<think>", ThinkEnd: []string{"</think>"},
		Preserved: []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChatDate(t *testing.T) {
	now := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	in := llama.ChatInput{Messages: []llama.ChatMessage{say("system", "Hi.")}, Now: now, NoGenerationPrompt: true}
	got := render(t, llamatest.Options{PrintDate: true}, in).Parts[0].Text
	if want := "<|im_start|>system\nToday is 2026-03-04.\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChatRefuses(t *testing.T) {
	bare := errors.New("roles must alternate")
	model := llamatest.New(llamatest.Options{Refuse: func(in llama.ChatInput) error {
		if len(in.Messages) > 1 {
			return bare
		}
		return nil
	}})
	chat, err := model.NewChat(llama.ChatParams{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = chat.Render(llama.ChatInput{Messages: []llama.ChatMessage{say("user", "a"), say("user", "b")}})
	if !errors.Is(err, llama.ErrTemplate) || !errors.Is(err, bare) {
		t.Errorf("a refused conversation: %v", err)
	}
	if _, err := chat.Render(llama.ChatInput{Messages: []llama.ChatMessage{say("king", "a")}}); !errors.Is(err, llama.ErrTemplate) {
		t.Errorf("an unknown role: %v", err)
	}
}
