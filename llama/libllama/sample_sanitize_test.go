//go:build cgo

package libllama

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Random and hostile rows meet no undefined behaviour, no access out of bounds
// and no race.
func TestSampleSanitizers(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the sampler twice")
	}
	sources, err := filepath.Glob("sample_*.cpp")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "shim_sample.cpp", "testdata/sample/sanitize.cpp", "-lpthread")
	for _, sanitizers := range []string{"address,undefined,float-cast-overflow", "thread"} {
		t.Run(sanitizers, func(t *testing.T) {
			t.Parallel()
			flags := []string{"-g", "-O1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", "-fsanitize=" + sanitizers}
			if err := exec.Command(goTool(t, "env", "CXX"), append(flags, "-o", filepath.Join(t.TempDir(), "empty"), "testdata/sample/empty.cpp")...).Run(); err != nil {
				t.Skipf("the C++ compiler has no such sanitizer: %v", err)
			}
			program := compileCXX(t, slices.Concat(flags, sources)...)
			if out, err := exec.Command(program).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
