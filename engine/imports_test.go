package engine_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/b3os/b3infer/"

// arrows say which packages of ours a package may import, as CONVENTIONS.md
// and ARCHITECTURE.md draw them. Test files may also import what fakes.
var arrows = map[string][]string{
	"accounts":              {},
	"accounts/accountstest": {"accounts"},
	"cmd/b3infer":           {"accounts", "engine", "grammar", "grammar/mask", "handlers", "llama", "llama/libllama", "models", "vision"},
	"engine":                {"grammar", "grammar/mask", "llama", "vision"},
	"grammar":               {},
	"grammar/grammartest":   {},
	"grammar/mask":          {"grammar"},
	"handlers":              {"accounts", "engine", "models", "vision"},
	"llama":                 {},
	"llama/libllama":        {"llama"},
	"llama/llamatest":       {"llama"},
	"models":                {},
	"scripts/gpucheck":      {},
	"vision":                {},
}

// forTests may be imported by any test, with what it needs.
var forTests = []string{"accounts/accountstest", "grammar/grammartest", "llama", "llama/llamatest"}

// outside are imports of others' code that only some packages may have.
var outside = map[string][]string{
	"C":                           {"llama/libllama"},
	"database/sql":                {"accounts", "accounts/accountstest"},
	"github.com/labstack/echo/v5": {"cmd/b3infer", "handlers"},
	"modernc.org/sqlite":          {"accounts"},
	"modernc.org/sqlite/lib":      {"accounts"},
}

func TestImports(t *testing.T) {
	files := sourceFiles(t, "..")
	if len(files) == 0 {
		t.Fatal("no source files found")
	}
	for _, file := range files {
		checkImports(t, file)
	}
}

func sourceFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name[0] == '.' || name[0] == '_' || name == "testdata" || elsewhere(path)) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(name, ".go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// elsewhere tells whether a folder is the root of another module.
func elsewhere(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

func checkImports(t *testing.T, file string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	pkg, err := filepath.Rel("..", filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	allowed, known := arrows[pkg]
	if !known && parsed.Name.Name != "main" {
		t.Errorf("%s: package %s is not in the list of arrows", file, pkg)
		return
	}
	isTest := strings.HasSuffix(file, "_test.go")
	for _, spec := range parsed.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if users, restricted := outside[path]; restricted && !slices.Contains(users, pkg) {
			t.Errorf("%s imports %s: only %s may", file, path, strings.Join(users, " and "))
		}
		ours, ok := strings.CutPrefix(path, module)
		if !ok || slices.Contains(allowed, ours) || ours == pkg || isTest && slices.Contains(forTests, ours) {
			continue
		}
		t.Errorf("%s imports %s: there is no arrow from %s to it", file, ours, pkg)
	}
}
