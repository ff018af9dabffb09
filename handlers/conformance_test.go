package handlers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A point is a numbered line of testdata/contract.txt.
type point struct {
	heading, number, text string
	reason                string // why it cannot be shown
}

func readPoints(t *testing.T) []point {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.txt")
	if err != nil {
		t.Fatal(err)
	}
	var points []point
	heading := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		number, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "## "):
			heading = line[3:]
		case strings.HasPrefix(line, "    "):
			points[len(points)-1].reason = strings.TrimSpace(line)
		case line != "" && number != "#":
			points = append(points, point{heading: heading, number: number, text: rest})
		}
	}
	return points
}

var pointNumber = regexp.MustCompile(`(?:\b|_|TestContract)C(\d{3})`)

// shownBy finds the tests that name points: in their own names, in those of
// their cases, and in comments within.
func shownBy(t *testing.T) map[string][]string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*_test.go", "../cmd/b3infer/*_test.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || found == nil {
			t.Fatalf("no tests in %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	tests := map[string][]string{}
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			note := func(text string) {
				for _, match := range pointNumber.FindAllStringSubmatch(text, -1) {
					number := match[1]
					if !slices.Contains(tests[number], f.Name.Name) {
						tests[number] = append(tests[number], f.Name.Name)
					}
				}
			}
			note(f.Name.Name)
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
					note(strings.Trim(s.Value, "\"`"))
				}
				return true
			})
			for _, group := range file.Comments {
				if group.Pos() > f.Pos() && group.End() < f.End() {
					note(group.Text())
				}
			}
		}
	}
	return tests
}

// later are points that come with what is not built yet. One that a test names is
// not among them.
var later = map[string]string{
	"008": "Messages", "019": "Messages", "020": "count_tokens", "025": "Messages", "026": "Messages", "042": "Messages",
	"043": "Messages", "044": "Messages", "049": "Messages", "054": "Messages", "056": "Messages", "059": "Messages",
	"061": "Messages", "063": "Messages", "067": "Messages", "070": "Messages", "077": "Messages", "098": "Messages", "103": "Messages",
	"081": "count_tokens",
	"076": "Responses", "091": "Responses", "102": "Responses", "332": "Responses", "333": "Responses",
	"052": "images", "083": "images", "089": "images", "090": "images", "092": "images", "093": "images", "094": "images",
	"095": "images", "096": "images", "097": "images",
}

// docs/conformance.md lists every point with the tests that show it.
func TestConformancePage(t *testing.T) {
	tests := shownBy(t)
	var page strings.Builder
	page.WriteString("# What of the contract is shown, and where\n\n" +
		"Made by `go test ./handlers -run TestConformancePage -update` from the names of the tests; do not edit.\n")
	heading, shown, reasons, awaited := "", 0, 0, 0
	points := readPoints(t)
	for _, p := range points {
		if p.heading != heading {
			heading = p.heading
			fmt.Fprintf(&page, "\n## %s\n\n| point | what holds | shown by |\n| --- | --- | --- |\n", heading)
		}
		by := "no test"
		switch names := tests[p.number]; {
		case len(names) > 0:
			slices.Sort(names)
			by = "`" + strings.Join(names, "`, `") + "`"
			shown++
			if later[p.number] != "" {
				t.Errorf("%s is said to come with %s, and %v show it", p.number, later[p.number], names)
			}
		case later[p.number] != "":
			by = "comes with " + later[p.number]
			awaited++
		case p.reason == "":
			t.Errorf("%s has no test", p.number)
		default:
			by = "cannot be shown: " + p.reason
			reasons++
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", p.number, strings.ReplaceAll(p.text, "|", `\|`), by)
	}
	fmt.Fprintf(&page, "\n%d points: %d shown, %d that cannot be, %d that come with what is not built yet.\n", len(points), shown, reasons, awaited)
	const file = "../docs/conformance.md"
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(text)); diff != "" {
		t.Errorf("%s is not current, run this test with -update (-want +got):\n%s", file, diff)
	}
}
