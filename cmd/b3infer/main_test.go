package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

// modelFile is a model that models.Inspect and the fake backend know.
const modelFile = "Fake.gguf"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"b3infer": main,
		"fake-b3infer": func() {
			os.Exit(newFakeProgram(llamatest.Options{Script: func(string) (string, bool) { return "Hello there.", true }}).run())
		},
		"endless-b3infer": func() { os.Exit(newFakeProgram(slow(llamatest.Options{MeanAnswer: -1})).run()) },
	})
}

// slow makes a model of which an answer outlasts a test: its context would
// otherwise be full in no time.
func slow(o llamatest.Options) llamatest.Options {
	o.OnDecode = func(*llama.Batch) error {
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	return o
}

// newFakeProgram is the program with the fake in llama.cpp's place. The
// system that it looks at is the folder root, if there is one.
func newFakeProgram(o llamatest.Options) *program {
	p := newProgram()
	if _, err := os.Stat("root"); err == nil {
		p.root = os.DirFS("root")
	}
	p.openBackend = func(*slog.Logger, int) (llama.Backend, error) {
		return llamatest.NewBackend(map[string]llamatest.Options{modelFile: o}), nil
	}
	p.template = func(string) (llama.Chat, error) {
		return llamatest.New(llamatest.Options{}).NewChat(llama.ChatParams{})
	}
	return p
}

// gguf is a model file of one layer of attention, trained for 4,096 tokens.
func gguf() []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				binary.Write(&b, binary.LittleEndian, uint64(len(s))) // a buffer takes all writes
				b.WriteString(s)
				continue
			}
			binary.Write(&b, binary.LittleEndian, v)
		}
	}
	const text, number = uint32(8), uint32(4)
	b.WriteString("GGUF")
	put(uint32(3), uint64(1), uint64(5)) // version, tensors, keys
	put("general.architecture", text, "llama")
	put("llama.block_count", number, uint32(1))
	put("llama.context_length", number, uint32(4096))
	put("llama.embedding_length", number, uint32(64))
	put("llama.attention.head_count", number, uint32(4))
	put("blk.0.attn_k.weight", uint32(2), uint64(64), uint64(64), uint32(0), uint64(0))
	b.Write(make([]byte, -b.Len()&31+64*64*4))
	return b.Bytes()
}

// TestScripts runs the program as a user does: exit statuses and messages.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"cmp-answers": cmpAnswers},
		Setup: func(env *testscript.Env) error {
			model := gguf()
			if err := os.WriteFile(filepath.Join(env.WorkDir, modelFile), model, 0o600); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "cut.gguf"), model[:len(model)-1], 0o600)
		},
	})
}
