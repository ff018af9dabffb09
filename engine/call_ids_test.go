package engine

import (
	"errors"
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// Templates that want ids of nine characters get them, of the call and of its result
// alike; others see the client's.
func TestCallIDs(t *testing.T) {
	r := user("hi")
	r.Messages = append(r.Messages,
		Message{Role: RoleAssistant, Calls: []Call{{ID: "call_01KF8Y9ZT3N4", Name: "f", Arguments: "{}"}}},
		Message{Role: RoleTool, CallID: "call_01KF8Y9ZT3N4", Content: []string{"ok"}},
	)
	var seen []string
	strict := false
	refuse := func(in llama.ChatInput) error {
		if len(in.Messages) < 3 {
			return nil
		}
		call, result := in.Messages[1].Calls[0].ID, in.Messages[2].ToolCallID
		seen = append(seen, call)
		if call != result {
			t.Errorf("the call is %q, its result answers %q", call, result)
		}
		if strict && len(call) != 9 {
			return errors.New("ids must have length 9")
		}
		return nil
	}
	e, _ := newEngine(t, llamatest.Options{Refuse: refuse}, Params{})
	for _, strict = range []bool{false, true} {
		if _, err := e.Prepare(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 3 || seen[0] != "call_01KF8Y9ZT3N4" || seen[2] != shortID(seen[0]) || shortID(seen[2]) != seen[2] {
		t.Errorf("the template saw %q", seen)
	}
	if r.Messages[1].Calls[0].ID != "call_01KF8Y9ZT3N4" {
		t.Error("the request was changed")
	}
}
