package engine

import (
	"crypto/sha256"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// callIDLength is how long the ids of calls are in templates that say so (Mistral's).
const callIDLength = 9

// shortIDs is a conversation with ids of calls that every template takes: nine letters
// and digits, a hash of the client's ids. ok is false where that changes nothing.
func shortIDs(in llama.ChatInput) (out llama.ChatInput, ok bool) {
	out = in
	out.Messages = slices.Clone(in.Messages)
	shorten := func(id *string) {
		if short := shortID(*id); *id != "" && short != *id {
			*id, ok = short, true
		}
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		m.Calls = slices.Clone(m.Calls)
		for j := range m.Calls {
			shorten(&m.Calls[j].ID)
		}
		shorten(&m.ToolCallID)
	}
	return out, ok
}

// shortID is the id if it is short already, else a hash of it.
func shortID(id string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	plain := func(c rune) bool { return c < 0x80 && slices.Contains([]byte(digits), byte(c)) }
	if len(id) == callIDLength && !slices.ContainsFunc([]rune(id), func(c rune) bool { return !plain(c) }) {
		return id
	}
	hash := sha256.Sum256([]byte(id))
	var out [callIDLength]byte
	for i := range out {
		out[i] = digits[int(hash[i])%len(digits)]
	}
	return string(out[:])
}
