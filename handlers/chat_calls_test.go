package handlers

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/engine"
)

// spoken is what a client has of an answer.
type spoken struct {
	Content, Reasoning string
	Tokens             []string // of the logprobs
	Calls              []spokenCall
	Finish             string
}

type spokenCall struct{ ID, Type, Name, Arguments string }

// wireCall is a tool call of a message, or a part of one in a delta.
type wireCall struct {
	Index    int
	ID, Type string
	Function struct{ Name, Arguments string }
}

type wireMessage struct {
	Content   *string
	Reasoning string     `json:"reasoning_content"`
	ToolCalls []wireCall `json:"tool_calls"`
}

// hear reads a whole answer or a stream. Calls of a stream must come one after the
// other, each beginning with all but its arguments.
func hear(t *testing.T, body string) spoken {
	t.Helper()
	texts := []string{body}
	streamed := strings.HasPrefix(body, "data: ")
	if streamed {
		texts = events(t, body)
	}
	var s spoken
	for _, text := range texts {
		if text == "[DONE]" {
			continue
		}
		var answer struct {
			Choices []struct {
				Message, Delta wireMessage
				Logprobs       wireLogprobs
				FinishReason   string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		for _, c := range answer.Choices {
			s.Finish += c.FinishReason
			for _, token := range c.Logprobs.Content {
				s.Tokens = append(s.Tokens, token.Token)
			}
			s.add(t, c.Message, false)
			s.add(t, c.Delta, true)
		}
	}
	return s
}

func (s *spoken) add(t *testing.T, m wireMessage, delta bool) {
	t.Helper()
	if m.Content != nil {
		s.Content += *m.Content
	}
	s.Reasoning += m.Reasoning
	for _, c := range m.ToolCalls {
		switch {
		case !delta || c.ID != "":
			if delta && (c.Index != len(s.Calls) || c.Function.Arguments != "" || c.Function.Name == "") {
				t.Errorf("C163: call %d begins with %+v", len(s.Calls), c)
			}
			s.Calls = append(s.Calls, spokenCall{c.ID, c.Type, c.Function.Name, c.Function.Arguments})
		case c.Index != len(s.Calls)-1 || c.Type != "" || c.Function.Name != "":
			t.Errorf("C163: a piece of call %d is %+v", len(s.Calls)-1, c)
		default:
			s.Calls[c.Index].Arguments += c.Function.Arguments
		}
	}
}

// calling is a script that answers with these events between the first and the last.
func calling(reason engine.FinishReason, events ...engine.Event) *script {
	s := &script{events: []engine.Event{engine.First{PromptTokens: 17, Timing: testTiming}}}
	s.events = append(s.events, events...)
	s.events = append(s.events, engine.Finish{Reason: reason, Usage: engine.Usage{Prompt: 17, Answer: 5}, Timing: testTiming})
	return s
}

func callEvents(id, name string, pieces ...string) []engine.Event {
	events := []engine.Event{engine.CallStart{ID: id, Name: name}}
	for _, p := range pieces {
		events = append(events, engine.CallArguments{Text: p})
	}
	return append(events, engine.CallEnd{})
}

var callID = regexp.MustCompile(`^call_[0-9a-hjkmnp-tv-z]{26}$`)

func TestContractC149_C150_C151_C163_Calls(t *testing.T) {
	e := calling(engine.FinishCalls, callEvents("", "get_weather", `{"city":`, `"Eugene"}`)...)
	e.events = append(e.events[:len(e.events)-1], append(callEvents("", "get_weather", `{}`), e.events[len(e.events)-1])...)
	for _, stream := range []string{`"stream":false`, `"stream":true`} {
		w := do(t, serve(t, e), post(chatPath, chatBody(stream)))
		got := hear(t, w.Body.String())
		ids := map[string]bool{}
		for i, c := range got.Calls {
			if !callID.MatchString(c.ID) || !json.Valid([]byte(c.Arguments)) {
				t.Errorf("C151: %+v", c)
			}
			ids[c.ID] = true
			got.Calls[i].ID = ""
		}
		want := spoken{Finish: "tool_calls", Calls: []spokenCall{
			{Type: "function", Name: "get_weather", Arguments: `{"city":"Eugene"}`}, {Type: "function", Name: "get_weather", Arguments: `{}`},
		}}
		if diff := cmp.Diff(want, got); diff != "" || len(ids) != 2 {
			t.Errorf("%s: %d ids, -want +got:\n%s", stream, len(ids), diff)
		}
		if null := strings.Contains(w.Body.String(), `"content":null`); null != (stream == `"stream":false`) { // C150
			t.Errorf("%s: %s", stream, w.Body)
		}
	}
}

// The ids that a model gives its calls are kept where they tell the calls apart.
func TestCallIDs(t *testing.T) {
	e := calling(engine.FinishCalls, append(callEvents("f:0", "f", "{}"), append(callEvents("f:0", "f", "{}"), callEvents("f:1", "f", "{}")...)...)...)
	for _, stream := range []string{`"stream":false`, `"stream":true`} {
		got := hear(t, do(t, serve(t, e), post(chatPath, chatBody(stream))).Body.String())
		if len(got.Calls) != 3 || got.Calls[0].ID != "f:0" || !callID.MatchString(got.Calls[1].ID) || got.Calls[2].ID != "f:1" {
			t.Errorf("got %+v", got.Calls)
		}
	}
}

// A call that is cut off is told as far as it came, and the reason is length.
func TestContractC149_CutCall(t *testing.T) {
	begun := callEvents("c", "get_weather", `{"city":"Eu`)
	e := calling(engine.FinishLength, begun[:len(begun)-1]...)
	want := spoken{Finish: "length", Calls: []spokenCall{{ID: "c", Type: "function", Name: "get_weather", Arguments: `{"city":"Eu`}}}
	for _, stream := range []string{`"stream":false`, `"stream":true`} {
		got := hear(t, do(t, serve(t, e), post(chatPath, chatBody(stream))).Body.String())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", stream, diff)
		}
	}
}

// Whatever the events, the stream and the whole answer say the same.
func TestStreamEqualsWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		return []string{"a", `"`, "\n", "é😀", "\u2028", `{"x":`, "1}", "\\", "<tool_call>"}[random.IntN(9)]
	}
	h := serve(t, nil)
	for range 300 {
		e, want := randomAnswer(random, word)
		h.model.Serve(e)
		whole := hear(t, do(t, h, post(chatPath, chatBody(`"logprobs":true`))).Body.String())
		streamed := hear(t, do(t, h, post(chatPath, chatBody(`"logprobs":true,"stream":true`))).Body.String())
		if diff := cmp.Diff(want, whole); diff != "" {
			t.Fatalf("%+v: whole, -want +got:\n%s", e.events, diff)
		}
		if diff := cmp.Diff(want, streamed); diff != "" {
			t.Fatalf("%+v: streamed, -want +got:\n%s", e.events, diff)
		}
	}
}

// randomAnswer makes the events of an answer, and what is to be heard of them.
func randomAnswer(random *rand.Rand, word func() string) (*script, spoken) {
	var all []engine.Event
	want := spoken{Finish: "stop"}
	for range random.IntN(3) {
		all = append(all, engine.Text{Text: word(), Reasoning: true})
		want.Reasoning += all[len(all)-1].(engine.Text).Text
	}
	for range random.IntN(3) {
		text := engine.Text{Text: word()}
		for range random.IntN(3) {
			token := word()
			text.Tokens = append(text.Tokens, engine.Drawn{Candidate: engine.Candidate{Piece: []byte(token), Logprob: -1}})
			want.Tokens = append(want.Tokens, token)
		}
		all = append(all, text)
		want.Content += text.Text
	}
	reason := engine.FinishStop
	for i := range random.IntN(4) {
		call := spokenCall{ID: string(rune('a' + i)), Type: "function", Name: "f"}
		var pieces []string
		for range random.IntN(4) {
			pieces = append(pieces, word())
		}
		call.Arguments = strings.Join(pieces, "")
		all = append(all, callEvents(call.ID, call.Name, pieces...)...)
		want.Calls = append(want.Calls, call)
		reason, want.Finish = engine.FinishCalls, "tool_calls"
	}
	if n := len(all); n > 0 && all[n-1] == (engine.CallEnd{}) && random.IntN(2) == 0 {
		all, reason, want.Finish = all[:n-1], engine.FinishLength, "length"
	}
	return calling(reason, all...), want
}
