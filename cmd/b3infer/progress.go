package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// A progress shows how far a job is: a bar that grows on a terminal, elsewhere
// a line for each quarter.
type progress struct {
	w        io.Writer
	label    string
	terminal bool
	percent  int // what is shown; -1 at first
}

const barWidth = 30

func newProgress(w io.Writer, label string) *progress {
	file, ok := w.(*os.File)
	return &progress{w: w, label: label, terminal: ok && term.IsTerminal(int(file.Fd())), percent: -1}
}

// set shows that a share of the job, 0 to 1, is done.
func (p *progress) set(done float32) {
	percent := int(100 * min(max(done, 0), 1))
	if !p.terminal {
		percent -= percent % 25
	}
	if percent <= p.percent {
		return
	}
	p.percent = percent
	if !p.terminal {
		fmt.Fprintf(p.w, "%s: %d%%\n", p.label, percent)
		return
	}
	full := barWidth * percent / 100
	fmt.Fprintf(p.w, "\r\x1b[K%s  %s%s %3d%%", p.label, strings.Repeat("━", full), strings.Repeat("─", barWidth-full), percent)
}

// clear takes the bar off a terminal, for what is printed next.
func (p *progress) clear() {
	if p.terminal && p.percent >= 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
