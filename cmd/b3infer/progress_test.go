package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestProgress(t *testing.T) {
	bar := func(n, percent string) string {
		full := strings.Count(n, "#")
		return "\r\x1b[Kjob  " + strings.Repeat("━", full) + strings.Repeat("─", barWidth-full) + " " + percent
	}
	tests := []struct {
		name     string
		terminal bool
		done     []float32
		want     string
	}{
		{"file", false, []float32{0, 0.1, 0.3, 0.3, 0.74, 1, 1}, "job: 0%\njob: 25%\njob: 50%\njob: 100%\n"},
		{"terminal", true, []float32{0, 0.101, 0.1, 0.5, 2}, bar("", "  0%") + bar("###", " 10%") +
			bar(strings.Repeat("#", 15), " 50%") + bar(strings.Repeat("#", 30), "100%") + "\r\x1b[K"},
		{"never begun", true, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			p := newProgress(&b, "job")
			p.terminal = test.terminal
			for _, d := range test.done {
				p.set(d)
			}
			p.clear()
			if b.String() != test.want {
				t.Errorf("got %q, want %q", b.String(), test.want)
			}
		})
	}
}
