//go:build cgo

package libllama

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// Templates and conversations, hostile ones among them, meet no undefined
// behaviour, leak or access out of bounds.
func TestChatSanitizers(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the shim")
	}
	flags := []string{"-g", "-O1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", "-fsanitize=address,undefined"}
	if err := exec.Command(goTool(t, "env", "CXX"), append(flags, "-o", filepath.Join(t.TempDir(), "empty"), "testdata/sample/empty.cpp")...).Run(); err != nil {
		t.Skipf("the C++ compiler has no such sanitizer: %v", err)
	}
	sources, err := filepath.Glob("jinja_*.cpp")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "shim_chat.cpp", "testdata/chat/sanitize.cpp")
	program := compileCXX(t, slices.Concat(flags, sources, linkFlags(t))...)
	cmd := exec.Command(program)
	// llama.cpp itself is compiled without the sanitizers, so its vectors have no marks.
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_container_overflow=0")
	cmd.Stdin = bytes.NewReader(chatRecords(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%.4000s", err, out)
	}
	t.Logf("%s", out)
}

// chatRecords is the program's input.
func chatRecords(t *testing.T) []byte {
	var out []byte
	add := func(letter byte, texts ...[]byte) {
		out = append(out, letter)
		for _, text := range texts {
			out = binary.LittleEndian.AppendUint64(out, uint64(len(text)))
		}
		out = append(out, bytes.Join(texts, nil)...)
	}
	use := func(source string, conversations ...llama.ChatInput) {
		add('T', []byte(source), []byte(testBOS), []byte(testEOS))
		c, err := NewTemplate(source, testBOS, testEOS)
		if err != nil {
			return
		}
		for _, in := range conversations {
			e := encoder{template: c.(*chat).template, join: true}
			if err := e.conversation(in); err == nil {
				inputs := e.inputs(in.Now)
				add('R', inputs[:]...)
			}
		}
	}
	for _, source := range hostileSources {
		use(source)
	}
	for _, refusal := range refusals {
		if refusal.name != "a list in itself" { // nothing ever frees it
			use(refusal.source, refusal.in)
		}
	}
	for _, source := range deepSources {
		use(source, llama.ChatInput{Messages: user("20000")})
	}
	templates := testTemplates(t)
	conversations := testConversations(t)
	random := rand.New(rand.NewPCG(5, 6))
	for i, name := range slices.Sorted(maps.Keys(templates)) {
		some := []llama.ChatInput{filled(random, zaps), filled(random, zaps)}
		for k := i % 5; k < len(conversations); k += 5 {
			some = append(some, conversations[k].input(t))
		}
		use(templates[name], some...)
	}
	return out
}
