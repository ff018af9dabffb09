package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// shown is pieces on one line.
func shown(pieces []Piece) string {
	var parts []string
	for _, p := range pieces {
		part := []string{"content", "reasoning", "name", "arguments", "end"}[p.Kind]
		if p.Kind >= CallName {
			part += fmt.Sprint(" ", p.Call)
		}
		if p.ID != "" {
			part += " #" + p.ID
		}
		if p.Text != "" {
			part += fmt.Sprintf(" %q", p.Text)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// TestReaderStreams: text comes as soon as no mark can begin in it, calls as they are
// written or once they are whole.
func TestReaderStreams(t *testing.T) {
	const (
		qwen3 = "Qwen-Qwen3-0.6B"
		coder = "Qwen3.5-4B"
		nemo  = "mistralai-Mistral-Nemo-Instruct-2407"
		kimi  = "Kimi-K2-Instruct"
		lfm   = "LFM2.5-8B-A1B"
		llama = "meta-llama-Llama-3.3-70B-Instruct"
	)
	type step struct{ push, want string }
	cases := envelopeCases(t)
	for _, tt := range []struct {
		name, template string
		thinking       bool
		whole          bool
		steps          []step
		end            string
	}{
		{"as written", qwen3, true, false, []step{
			{"<th", ``}, {"ink>\n", ``}, {"So", `reasoning "So"`}, {".\n</", `reasoning ".\n"`}, {"think>\n\nA", `content "A"`},
			{" <b <tool", `content " <b "`}, {"_call>\n", ``}, {`{"name": "now`, ``}, {`"`, `name 0 "now"`}, {`, "arguments": {`, `arguments 0 "{"`},
			{`"a":"\`, `arguments 0 "\"a\":\""`}, {`n" `, `arguments 0 "\\n\" "`}, {"}}", `arguments 0 "}"`}, {"\n</tool_call>", `end 0`},
			{"\n", ``}, {"Done.", `content "Done."`}, {" <tool_call>", `content " <tool_call>"`},
		}, ``},
		{"whole", qwen3, false, true, []step{
			{`<tool_call>` + "\n" + `{"name": "now", "arguments": {"a":1}}`, ``}, {"\n", ``},
			{"</tool_call>\n", `name 0 "now", arguments 0 "{\"a\":1}", end 0`}, {"<tool_call>\n{", ``},
		}, `content "<tool_call>\n{"`},
		{"malformed", qwen3, false, true, []step{
			{"A<tool_call>\n{\"name\": \"now\", \"arguments\": {}", `content "A"`}, {"]", `content "<tool_call>\n{\"name\": \"now\", \"arguments\": {}]"`}, {"<", `content "<"`},
		}, ``},
		{"cut", qwen3, false, true, []step{
			{"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"R\\u00", ``},
		}, `name 0 "get_weather", arguments 0 "{\"city\": \"R"`},
		{"cut before the name", qwen3, false, true, []step{{"A<tool_call>\n{\"name\": \"get_weather", `content "A"`}}, `content "<tool_call>\n{\"name\": \"get_weather"`},
		{"cut before the name, as written", qwen3, false, false, []step{{"A<tool_call>\n{\"name\": \"get_weather", `content "A"`}}, ``},
		{"cut behind reasoning", qwen3, true, true, []step{{"<think>\nSo.</think>\n\n<tool_call>\n{", `reasoning "So."`}}, `content "<tool_call>\n{"`},
		{"malformed behind reasoning", qwen3, true, true, []step{{"<think>\nSo.</think>\n\n<tool_call>\nx", `reasoning "So.", content "<tool_call>\nx"`}}, ``},
		{"no mark after all", qwen3, false, false, []step{{"A<tool_ca", `content "A"`}}, `content "<tool_ca"`},
		{"no reasoning", qwen3, true, false, []step{{"<think>\n ", ``}, {"\n</think>\n\nA", `content "A"`}}, ``},
		{"split characters", qwen3, false, false, []step{{"\xe2\x82", ``}, {"\xac", `content "€"`}, {"\xf0", ``}}, `content "\xf0"`},
		{"tagged", coder, false, false, []step{
			{"<tool_call>\n<function=get_weather>\n", `name 0 "get_weather"`}, {"<parameter=ci", ``}, {"ty>\n", `arguments 0 "{\"city\":"`},
			{"a\"\n</p", `arguments 0 "\"a\\\""`}, {"\n</parameter>", `arguments 0 "\\n</p"`}, {"\n<parameter=days>\n2", `arguments 0 "\",\"days\":2"`}, {"\n</parameter>\n", ``},
			{"</function>\n</tool_call>", `arguments 0 "}", end 0`},
		}, ``},
		{"id behind the arguments", nemo, false, false, []step{
			{`[TOOL_CALLS][{"name": "now", "arguments": `, ``}, {`{`, `name 0 "now", arguments 0 "{"`}, {`}, "id": "abc"}]`, `arguments 0 "}", end 0 #abc`},
		}, ``},
		{"id behind the arguments, whole", nemo, false, true, []step{
			{`[TOOL_CALLS][{"name": "now", "arguments": {}, "id": "abc"}]`, `name 0 #abc "now", arguments 0 "{}", end 0`},
		}, ``},
		{"id around the name", kimi, false, false, []step{
			{`<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0`, ``}, {`<|tool_call_argument_begin|>{`, `name 0 #functions.now:0 "now", arguments 0 "{"`},
		}, ``},
		{"Python", lfm, false, false, []step{
			{`<|tool_call_start|>[get_weather(`, `name 0 "get_weather"`}, {`days=[N`, `arguments 0 "{\"days\":["`}, {`one, '"`, `arguments 0 "null, \"\\\""`}, {`'], `, `arguments 0 "\"]"`},
			{`city="`, `arguments 0 ",\"city\":\""`}, {`R")`, `arguments 0 "R\""`}, {`]`, `arguments 0 "}", end 0`}, {`<|tool_call_end|>`, ``},
		}, ``},
		{"braces in text", llama, false, true, []step{{"a {", `content "a "`}, {"b", `content "{b"`}, {"}", `content "}"`}}, ``},
	} {
		e, err := findEnvelope(t, cases, tt.template, false, true, tt.thinking).parse()
		if err != nil {
			t.Fatal(err)
		}
		r := e.Read()
		r.Whole = tt.whole
		for _, s := range tt.steps {
			if got := shown(r.Push(s.push)); got != s.want {
				t.Errorf("%s: at %q: got  %s\nwant %s", tt.name, s.push, got, s.want)
			}
		}
		if got := shown(r.Close(true)); got != tt.end {
			t.Errorf("%s: at the end: got  %s\nwant %s", tt.name, got, tt.end)
		}
	}
}

// TestReaderNames: a tool whose name begins another's is not told in its place.
func TestReaderNames(t *testing.T) {
	readings, cases, _ := envelopeReadings(t)
	short := strings.NewReplacer("get_weather", "no", "get-weather", "no") // beside now
	envelopes := map[int]*Envelope{}
	calls := 0
	for i, a := range readings {
		if a.Kind != "whole" || len(a.Calls) == 0 {
			continue
		}
		c := cases[a.Case]
		e := envelopes[a.Case]
		if e == nil {
			var err error
			if e, err = ParseEnvelope([]byte(short.Replace(c.Envelope.Parser)), c.Envelope.Generation, nil); err != nil {
				t.Fatal(err)
			}
			envelopes[a.Case] = e
		}
		got := read(t, e, short.Replace(a.Text), i%4 == 0, func() int { return 1 })
		for j, call := range got.Calls {
			call.Ended = false
			want := a.Calls[j]
			if want.Name, want.ID = short.Replace(want.Name), short.Replace(want.ID); call != want || len(got.Calls) != len(a.Calls) {
				t.Errorf("%s: %q: got %+v, want %+v", c.Template, short.Replace(a.Text), got.Calls, a.Calls)
				break
			}
			calls++
		}
	}
	if calls < 4000 {
		t.Errorf("only %d calls", calls)
	}
}

// longAnswers are answers of 150 KB, by template.
func longAnswers() map[string][]string {
	const size = 150_000
	text := strings.Repeat("Lorem <ipsum> \"dolor\" sit {amet}, \n", size/35)
	blanks := strings.Repeat(" \n", size/2)
	numbers := strings.Repeat("1, ", size/3) + "1"
	deep := strings.Repeat("[", size/2) + strings.Repeat("]", size/2)
	hermes := func(arguments string) string {
		return "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + arguments + "}\n</tool_call>"
	}
	coder := func(city string) string {
		return "<tool_call>\n<function=get_weather>\n<parameter=city>\n" + city + "\n</parameter>\n</function>\n</tool_call>"
	}
	return map[string][]string{
		"Qwen-Qwen3-0.6B": {
			text, blanks, "<think>" + text, "<think>" + blanks, strings.Repeat("<tool_call", size/10), "<tool_call>\n" + text,
			hermes(`{"city": "` + strings.ReplaceAll(strings.ReplaceAll(text, `"`, `\"`), "\n", `\n`) + `"}`),
			hermes(`{"days": [` + numbers + `]}`), hermes(`{"days": ` + deep + `}`), hermes("{}" + blanks), hermes("{}") + blanks + "x",
			strings.Repeat(hermes("{}")+"\n", size/70),
		},
		"Qwen3.5-4B":                      {coder(text), coder(strings.Repeat("\n</parameter>", size/13)), strings.Repeat(coder("x"), size/100)},
		"LFM2.5-8B-A1B":                   {"<|tool_call_start|>[get_weather(days=[" + numbers + "]" + strings.Repeat(`,days='True "'`, size/20) + ")]<|tool_call_end|>"},
		"deepseek-ai-DeepSeek-V3.2":       {text, text + "</think>" + text, strings.Repeat("\n", size)},
		"meetkai-functionary-medium-v3.2": {"all\n" + text, "all\n" + strings.Repeat(">>>", size/3)},
		"openai-gpt-oss-120b":             {strings.Repeat("<|channel|>analysis<|message|>So.<|end|><|start|>assistant", size/55) + "<|channel|>final<|message|>" + text},
		"google-gemma-4-31B-it":           {text, "<|tool_call>call:get_weather{days:[" + numbers + "]}<tool_call|>", strings.Repeat("<|tool_call>", size/12)},
	}
}

// TestReaderIsLinear counts the steps of long answers in pushes of 4 bytes.
func TestReaderIsLinear(t *testing.T) {
	const most = 24 // steps for each byte
	cases := envelopeCases(t)
	for template, answers := range longAnswers() {
		e, err := findEnvelope(t, cases, template, false, true, true).parse()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range answers {
			for _, whole := range []bool{true, false} {
				r := e.Read()
				r.Whole = whole
				told := 0
				for i := 0; i < len(text); i += 4 {
					for _, p := range r.Push(text[i:min(i+4, len(text))]) {
						told += len(p.Text)
					}
				}
				r.Close(true)
				if r.steps > most*len(text) {
					t.Errorf("%s: %.30q…: %d steps for %d bytes", template, text, r.steps, len(text))
				}
				if told == 0 && len(strings.TrimLeft(text, "<think>"+blanks)) > 0 {
					t.Errorf("%s: %.30q…: nothing was told", template, text)
				}
			}
		}
	}
}

// TestReaderSteps: a parser that reads a text again and again does not hang.
func TestReaderSteps(t *testing.T) {
	// Each rule has two ways that begin with the next rule.
	var parsers []string
	const rules = 40
	for i := range rules {
		next := 3 * (i + 1)
		parsers = append(parsers, fmt.Sprintf(`{"type":"choice","children":[%d,%d]}`, 3*i+1, next),
			fmt.Sprintf(`{"type":"sequence","children":[%d,%d]}`, next, 3*i+2), `{"type":"literal","literal":"!"}`)
	}
	parsers = append(parsers, `{"type":"literal","literal":"a"}`)
	e, err := ParseEnvelope([]byte(`{"parsers":[`+strings.Join(parsers, ",")+`],"rules":{},"root":0}`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := e.Read()
	if got := shown(append(r.Push("ab"), r.Close(true)...)); got != `content "ab"` && got != `content "b"` {
		t.Errorf("got %s after %d steps", got, r.steps)
	}
}

func BenchmarkReader(b *testing.B) {
	e, err := findEnvelope(b, envelopeCases(b), "Qwen-Qwen3-0.6B", false, true, true).parse()
	if err != nil {
		b.Fatal(err)
	}
	answers := longAnswers()["Qwen-Qwen3-0.6B"]
	for name, text := range map[string]string{"text": answers[0], "call": answers[6], "numbers": answers[7]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r := e.Read()
				for i := 0; i < len(text); i += 4 {
					r.Push(text[i:min(i+4, len(text))])
				}
				r.Close(true)
			}
		})
	}
}

// FuzzReader looks for parsers and answers that make reading panic or hang, that lose
// text, or that read an answer in another way when it comes byte by byte.
func FuzzReader(f *testing.F) {
	readings, cases, _ := envelopeReadings(f)
	seen := map[string]bool{}
	for _, r := range readings {
		if c := cases[r.Case]; !seen[c.Template+r.Kind] {
			seen[c.Template+r.Kind] = true
			f.Add([]byte(c.Envelope.Parser), c.Envelope.Generation, r.Text)
		}
	}
	f.Fuzz(func(t *testing.T, parser []byte, generation, text string) {
		e, err := ParseEnvelope(parser, generation, nil)
		if err != nil {
			return
		}
		for _, whole := range []bool{true, false} {
			all, bytewise := e.Read(), e.Read()
			all.Whole, bytewise.Whole = whole, whole
			pieces := append(all.Push(text), all.Close(true)...)
			var single []Piece
			for i := range len(text) {
				single = append(single, bytewise.Push(text[i:i+1])...)
			}
			single = append(single, bytewise.Close(true)...)
			if all.steps > minReadSteps/2 {
				return // where the bound lies depends on the pushes
			}
			if got, want := shown(joined(single)), shown(joined(pieces)); got != want {
				t.Fatalf("byte by byte\n%s\nin one\n%s", got, want)
			}
			checkLossless(t, all, pieces, text)
		}
	})
}

// joined is pieces with neighbours of one kind as one.
func joined(pieces []Piece) []Piece {
	var out []Piece
	for _, p := range pieces {
		if n := len(out); n > 0 && p.Kind != CallName && p.Kind != CallEnd && out[n-1].Kind == p.Kind && out[n-1].Call == p.Call {
			out[n-1].Text += p.Text
		} else {
			out = append(out, p)
		}
	}
	return out
}

// checkLossless: content and reasoning stand in the answer in this order, content where
// it says, and what did not parse was told to its end.
func checkLossless(t *testing.T, r *Reader, pieces []Piece, text string) {
	t.Helper()
	at := 0
	for _, p := range pieces {
		if p.Kind > Reasoning {
			continue
		}
		if p.Kind == Content {
			if p.Start < at || !strings.HasPrefix(text[p.Start:], p.Text) {
				t.Fatalf("%q is not at %d of %q", p.Text, p.Start, text)
			}
			at = p.Start + len(p.Text)
			continue
		}
		for i := range len(p.Text) {
			next := strings.IndexByte(text[at:], p.Text[i])
			if next < 0 {
				t.Fatalf("%q is not in %q behind %d", p.Text, text, at)
			}
			at += next + 1
		}
	}
	if r.state == plain && r.told != len(r.text) {
		t.Fatalf("%q of %q was lost", r.text[r.told:], text)
	}
}
