//go:build cgo

package libllama

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/llama"
)

// A testConversation is an entry of scripts/templates/conversations.json: a chat
// request as clients send it.
type testConversation struct {
	Name       string
	Thinking   bool
	Generation *bool
	Messages   []struct {
		Role, Name       string
		Content          json.RawMessage
		ReasoningContent string `json:"reasoning_content"`
		ToolCallID       string `json:"tool_call_id"`
		ToolCalls        []struct {
			ID       string
			Function llama.ChatCall
		} `json:"tool_calls"`
	}
	Tools []struct {
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
}

// testNow is when all conversations take place.
var testNow = time.Date(2026, 3, 5, 14, 7, 9, 0, time.UTC)

func (c *testConversation) input(t testing.TB) llama.ChatInput {
	in := llama.ChatInput{Thinking: c.Thinking, NoGenerationPrompt: c.Generation != nil && !*c.Generation, Now: testNow}
	for _, m := range c.Messages {
		to := llama.ChatMessage{Role: m.Role, Name: m.Name, Reasoning: m.ReasoningContent, ToolCallID: m.ToolCallID}
		to.Content = testContent(t, m.Content)
		for _, call := range m.ToolCalls {
			call.Function.ID = call.ID
			to.Calls = append(to.Calls, call.Function)
		}
		in.Messages = append(in.Messages, to)
	}
	for _, tool := range c.Tools {
		f := tool.Function
		in.Tools = append(in.Tools, llama.ChatTool{Name: f.Name, Description: f.Description, Parameters: string(f.Parameters)})
	}
	return in
}

// testContent is a string, null, or a list of parts.
func testContent(t testing.TB, raw json.RawMessage) []llama.ChatPart {
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		if text == nil {
			return nil
		}
		return []llama.ChatPart{{Text: *text}}
	}
	var parts []llama.ChatPart
	if err := json.Unmarshal(raw, &parts); err != nil {
		t.Fatal(err)
	}
	return parts
}

func testConversations(t testing.TB) []testConversation {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "scripts", "templates", "conversations.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []testConversation
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// The texts of BOS and EOS that scripts/templates/compare.py knows too.
const testBOS, testEOS = "<|test-bos|>", "<|test-eos|>"

// testTemplates are the sources of llama.cpp's collection, by name.
func testTemplates(t testing.TB) map[string]string {
	t.Helper()
	dir := os.Getenv("LLAMA_DIR")
	if dir == "" {
		t.Skip("LLAMA_DIR is not set (source the env file of scripts/build-llama)")
	}
	files, err := filepath.Glob(filepath.Join(dir, "models", "templates", "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", dir, err)
	}
	sources := map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources[strings.TrimSuffix(filepath.Base(file), ".jinja")] = string(source)
	}
	return sources
}

// TestWriteRenders writes what all templates make of all conversations to the
// file B3INFER_RENDERS, for scripts/templates/compare.py.
func TestWriteRenders(t *testing.T) {
	path := os.Getenv("B3INFER_RENDERS")
	if path == "" {
		t.Skip("B3INFER_RENDERS is not set (scripts/test.d/templates sets it)")
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	conversations := testConversations(t)
	encoder := json.NewEncoder(out)
	sources := testTemplates(t)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		source := sources[name]
		chat, err := NewTemplate(source, testBOS, testEOS)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range conversations {
			render := map[string]any{"template": name, "conversation": c.Name}
			if p, err := chat.Render(c.input(t)); err != nil {
				render["error"] = err.Error()
			} else {
				render["prompt"] = joinParts(p.Parts)
				render["generation"], render["start"], render["ends"] = p.Generation, p.ThinkStart, p.ThinkEnd
				render["thinking"], render["stops"] = p.Thinking, p.Stops
			}
			if err := encoder.Encode(render); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func joinParts(parts []llama.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.Write(p.Text)
	}
	return b.String()
}
