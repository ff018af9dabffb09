//go:build cgo

package libllama

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
)

// Greedy answers are those of a plain llama.cpp loop on the same library.
func TestPlainLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	const n = 64
	program := compileCXX(t, append([]string{"-O1", "testdata/core/plain.cpp"}, linkFlags(t)...)...)
	for _, file := range []string{smolModel, tinyModel, hybridModel} {
		t.Run(file, func(t *testing.T) {
			path := testModelPath(t, file)
			m := loadModel(t, path, llama.ModelParams{})
			c := newTestContext(t, m, llama.ContextParams{})
			var input strings.Builder
			var got [][]llama.Token
			for _, prompt := range promptTokens(t, m) {
				fmt.Fprintln(&input, strings.Trim(fmt.Sprint(prompt), "[]"))
				got = append(got, answerAlone(t, c, 0, prompt, n, len(prompt)))
				if err := c.SeqRemove(0, -1, -1); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(program, path, fmt.Sprint(n))
			cmd.Stdin = strings.NewReader(input.String())
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var want [][]llama.Token
			for line := range bytes.Lines(out) {
				want = append(want, parseTokens(t, string(line)))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The shim's core meets no undefined behaviour, leak or access out of bounds,
// from start to end of a process.
func TestCoreSanitizers(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the shim")
	}
	flags := []string{
		"-g", "-O1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", "-fsanitize=address,undefined",
		"shim.cpp", "shim_log.cpp", "testdata/core/sanitize.cpp",
	}
	program := compileCXX(t, append(flags, linkFlags(t)...)...)
	run := func(t *testing.T, args ...string) {
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil || string(out) != "ok\n" {
			t.Errorf("%v\n%s", err, out)
		}
	}
	t.Run("no model", func(t *testing.T) { run(t) })
	for _, file := range []string{smolModel, hybridModel} {
		t.Run(file, func(t *testing.T) { run(t, testModelPath(t, file)) })
	}
}
