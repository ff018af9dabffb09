package grammar

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestGolden prints the schemas of testdata/gbnf, one keyword or idiom a file:
// the section schema, then the sections gbnf (or error) and, when best effort
// differs, relaxed; instances in the sections admitted and refused, a line each.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/gbnf/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]string{}
			for _, f := range archive.Files {
				given[f.Name] = string(f.Data)
			}
			got := &txtar.Archive{Comment: archive.Comment, Files: goldenOf(t, given)}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func goldenOf(t *testing.T, given map[string]string) []txtar.File {
	schema := []byte(given["schema"])
	files := []txtar.File{{Name: "schema", Data: schema}}
	add := func(name, text string) {
		if text != "" {
			files = append(files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	g, err := FromSchema(schema, Options{Strict: true})
	if err != nil {
		add("error", err.Error()+"\n")
		loose, err := FromSchema(schema, Options{})
		if err == nil {
			var lines string
			for _, r := range loose.Relaxed() {
				lines += r.Error() + "\n"
			}
			add("relaxed", lines)
		}
		return files
	}
	add("gbnf", printed(t, g))
	for line := range strings.Lines(given["admitted"]) {
		if err := g.Check([]byte(strings.TrimSuffix(line, "\n"))); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for line := range strings.Lines(given["refused"]) {
		if g.Match([]byte(strings.TrimSuffix(line, "\n"))) {
			t.Errorf("admitted: %s", line)
		}
	}
	add("admitted", given["admitted"])
	add("refused", given["refused"])
	return files
}

func printed(t *testing.T, g *Grammar) string {
	text, err := g.GBNF()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseGBNF(text)
	if err != nil {
		t.Fatal(fmt.Errorf("%w in\n%s", err, text))
	}
	if twice, err := again.GBNF(); err != nil {
		t.Fatal(err)
	} else if third, err := ParseGBNF(twice); err != nil || len(third.Rules) != len(again.Rules) {
		t.Fatalf("printed again it is another: %v\n%s\n%s", err, text, twice)
	}
	return text
}
