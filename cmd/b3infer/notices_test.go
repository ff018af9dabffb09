package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The notices hold the licence of every module that is linked in.
func TestNotices(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: asks the go command for the modules and their licences")
	}
	var b strings.Builder
	for _, m := range linkedModules(t) {
		path, dir, _ := strings.Cut(m, " ")
		fmt.Fprintf(&b, "## %s\n\n", path)
		for _, text := range licences(t, dir) {
			fmt.Fprintf(&b, "```\n%s\n```\n\n", text)
		}
	}
	generated(t, "../../THIRD_PARTY_NOTICES.md", "modules", b.String())
}

// linkedModules lists the modules of the program's packages, with the folders
// of their sources.
func linkedModules(t *testing.T) []string {
	t.Helper()
	const format = `{{if not .Standard}}{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}{{end}}`
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == "" })
}

func licences(t *testing.T, dir string) []string {
	t.Helper()
	var texts []string
	for _, pattern := range []string{"LICENSE*", "COPYING*", "NOTICE*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	if len(texts) == 0 {
		t.Errorf("%s: no licence found", dir)
	}
	return texts
}
