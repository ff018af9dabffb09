package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// between returns what a document has before, between and after the comments
// <!-- name --> and <!-- /name -->.
func between(t *testing.T, document, name string) (before, inside, after string) {
	t.Helper()
	before, rest, ok1 := strings.Cut(document, "<!-- "+name+" -->\n")
	inside, after, ok2 := strings.Cut(rest, "<!-- /"+name+" -->\n")
	if !ok1 || !ok2 {
		t.Fatalf("no part %s", name)
	}
	return before, inside, after
}

// generated compares the named part of a document with what it should be, and
// with -update writes it.
func generated(t *testing.T, file, name, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, got, after := between(t, string(text), name)
	if *update {
		whole := before + "<!-- " + name + " -->\n" + want + "<!-- /" + name + " -->\n" + after
		if err := os.WriteFile(file, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, part %s: run the test with -update (-want +got):\n%s", file, name, diff)
	}
}

func serveCommand(t *testing.T) *cobra.Command {
	t.Helper()
	cmd, _, err := newProgram().command().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// The README's table of flags is made of the flags.
func TestReadmeFlags(t *testing.T) {
	var b strings.Builder
	b.WriteString("| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n")
	serveCommand(t).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		usage, own, _ := strings.Cut(strings.ReplaceAll(usage, "\n", " "), " (default ")
		value := strings.TrimSuffix(own, ")")
		if value == "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" {
			value = f.DefValue
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", f.Name, variable(f.Name), value, usage)
	})
	generated(t, "../../README.md", "flags", b.String())
}
