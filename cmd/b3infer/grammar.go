package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/grammar"
)

func (p *program) grammarCommand() *cobra.Command {
	var o grammarOptions
	cmd := &cobra.Command{
		Use:   "grammar --schema FILE [--check FILE... | --stats --model FILE] | --jsonl [FILE]",
		Short: "Print the grammar that a JSON Schema becomes, check instances against it, or measure it",
		Long: `grammar prints, as GBNF, the grammar to which a JSON Schema binds a model's
answers. No model is needed.

--check tells of each file with a JSON instance whether the grammar admits it
and, if not, at which byte it leaves the grammar and what could stand there. An
instance is looked at in the spelling of the grammar: without white space, in
its own order of keys and its own form of numbers. The exit status is 1 if any
is refused.

--jsonl reads lines {"id": …, "schema": …, "instances": [any JSON, …]} from a
file, or from stdin, and answers each with a line {"id", "ok", "error", "path",
"accepted", "compile_ms"}: whether the schema has a grammar, if not why, and the
JSON pointer to the keyword that is to blame; of each instance whether it is
admitted; and the time that the grammar took.

--stats tells what the grammar costs with a model's vocabulary: the time to
compile it, the size of its automaton, and how long token masks take along random
texts of it, the first time (cold) and again (warm). Only the vocabulary is read
from the model's file.

What cannot be enforced is an error, or, with --best-effort, is told on stderr
and left out, so that the grammar admits more than the schema. GBNF cannot say
that an array's items differ: that is checked, but not printed.`,
		Example: `  b3infer grammar --schema person.json
  b3infer grammar --schema person.json --check alice.json bob.json
  b3infer grammar --schema person.json --stats --model m.gguf
  b3infer grammar --jsonl < schemas.jsonl > results.jsonl`,
		RunE: func(_ *cobra.Command, args []string) error { return p.runGrammar(o, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.schema, "schema", "", "a `file` with a JSON Schema; - is stdin")
	flags.BoolVar(&o.check, "check", false, "check the instances in the named files, or on stdin")
	flags.BoolVar(&o.jsonl, "jsonl", false, "compile and check in bulk, a schema a line")
	flags.BoolVar(&o.stats, "stats", false, "measure the grammar with the vocabulary of --model")
	modelFlag(flags, &o.model)
	flags.BoolVar(&o.json, "json", false, "with --stats: print JSON")
	flags.BoolVar(&o.bestEffort, "best-effort", false, "leave out what cannot be enforced")
	return cmd
}

type grammarOptions struct {
	schema, model                         string
	check, jsonl, stats, json, bestEffort bool
}

func (p *program) runGrammar(o grammarOptions, args []string) error {
	if err := o.checkStats(args); err != nil {
		return err
	}
	switch {
	case o.jsonl && (o.schema != "" || o.check):
		return errors.New("--jsonl has schemas and instances of its own: leave out --schema and --check")
	case o.jsonl && len(args) > 1, !o.jsonl && !o.check && len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[len(args)-1])
	case o.jsonl:
		return p.answerLines(args, o.bestEffort)
	case o.schema == "":
		return errors.New("no schema: give one with --schema FILE, or many with --jsonl")
	case o.schema == "-" && o.check && len(args) == 0:
		return errors.New("the schema is on stdin: name the files to check")
	case o.stats:
		return p.showStats(o)
	}
	g, err := p.readGrammar(o)
	if err != nil {
		return err
	}
	if o.check {
		return p.checkFiles(g, args)
	}
	text, err := g.GBNF()
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.out, text)
	return err
}

// readGrammar compiles the schema and tells what is left out of it.
func (p *program) readGrammar(o grammarOptions) (*grammar.Grammar, error) {
	text, err := p.readInput([]string{o.schema})
	if err != nil {
		return nil, err
	}
	g, err := grammar.FromSchema(text, grammar.Options{Strict: !o.bestEffort, Unique: o.check})
	if err != nil {
		return nil, err
	}
	for _, r := range g.Relaxed() {
		fmt.Fprintf(p.err, "b3infer: not enforced: %v\n", &r)
	}
	return g, nil
}

// checkFiles says of each file whether its instance is admitted.
func (p *program) checkFiles(g *grammar.Grammar, files []string) error {
	if len(files) == 0 {
		files = []string{"-"}
	}
	refused := 0
	for _, file := range files {
		text, err := p.readInput([]string{file})
		if err != nil {
			return err
		}
		verdict := "accepted"
		if err := checkInstance(g, text); err != nil {
			verdict = err.Error()
			refused++
		}
		fmt.Fprintf(p.out, "%s: %s\n", file, verdict)
	}
	if refused > 0 {
		return fmt.Errorf("refused: %d of %d", refused, len(files))
	}
	return nil
}

// shownBefore is how much of an instance is shown before the place where it
// leaves the grammar.
const shownBefore = 40

// checkInstance is nil if the grammar admits the instance in its own spelling.
func checkInstance(g *grammar.Grammar, instance []byte) error {
	text, err := grammar.Compact(instance)
	if err != nil {
		return err
	}
	err = g.Check(text)
	if mismatch, ok := errors.AsType[*grammar.Mismatch](err); ok {
		before := text[max(0, mismatch.Offset-shownBefore):mismatch.Offset]
		return fmt.Errorf("refused at %w, after %q", err, before)
	}
	return err
}

// A bulkLine is a line of --jsonl's input.
type bulkLine struct {
	ID        json.RawMessage   `json:"id"`
	Schema    json.RawMessage   `json:"schema"`
	Instances []json.RawMessage `json:"instances"`
}

// A bulkAnswer is the line that answers it.
type bulkAnswer struct {
	ID        json.RawMessage `json:"id"`
	OK        bool            `json:"ok"`
	Error     string          `json:"error,omitempty"`
	Path      *string         `json:"path,omitempty"`
	Accepted  []bool          `json:"accepted"` // as long as instances
	CompileMS float64         `json:"compile_ms"`
}

// answerLines answers line by line, so that it can be talked to through pipes.
func (p *program) answerLines(args []string, bestEffort bool) error {
	in := p.in
	if len(args) == 1 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	lines := bufio.NewReader(in)
	out := json.NewEncoder(p.out)
	out.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) > 0 {
			if err := out.Encode(answerLine(line, bestEffort)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

func answerLine(text []byte, bestEffort bool) bulkAnswer {
	var line bulkLine
	if err := json.Unmarshal(text, &line); err != nil {
		reason := err.Error()
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			reason = "must be an object with an array of instances"
		}
		return bulkAnswer{ID: line.ID, Error: "line: " + reason, Accepted: []bool{}}
	}
	a := bulkAnswer{ID: line.ID, Accepted: make([]bool, len(line.Instances))}
	start := time.Now()
	g, err := grammar.FromSchema(line.Schema, grammar.Options{Strict: !bestEffort, Unique: true})
	a.CompileMS = float64(time.Since(start).Microseconds()) / 1000
	if err != nil {
		a.Error, a.Path = err.Error(), pointerOf(err)
		return a
	}
	a.OK = true
	for i, instance := range line.Instances {
		a.Accepted[i] = checkInstance(g, instance) == nil
	}
	return a
}

// pointerOf is the place in the schema that an error blames, if it does.
func pointerOf(err error) *string {
	var at interface{ Pointer() string }
	if !errors.As(err, &at) {
		return nil
	}
	pointer := at.Pointer()
	return &pointer
}
