//go:build cgo

package libllama

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestSpinCount asks the libgomp of this program how long its threads spin.
func TestSpinCount(t *testing.T) {
	if dynamic {
		t.Skip("libgomp comes with the backends, which this run does not load")
	}
	for _, c := range []struct {
		name, set, want string
	}{
		{"by default", "", "1000"},
		{"the user's spin count", "GOMP_SPINCOUNT=7", "7"},
		{"the user's policy", "OMP_WAIT_POLICY=passive", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			for _, v := range os.Environ() {
				if !strings.HasPrefix(v, "OMP_") && !strings.HasPrefix(v, "GOMP_") {
					cmd.Env = append(cmd.Env, v)
				}
			}
			cmd.Env = append(cmd.Env, "OMP_DISPLAY_ENV=verbose", c.set)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			m := regexp.MustCompile(`GOMP_SPINCOUNT = '(\d+)'`).FindSubmatch(out)
			if m == nil {
				t.Fatalf("libgomp shows no settings:\n%s", out)
			}
			if got := string(m[1]); got != c.want {
				t.Errorf("GOMP_SPINCOUNT: got %s, want %s", got, c.want)
			}
		})
	}
}
