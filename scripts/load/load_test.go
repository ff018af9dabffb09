package main

import (
	"bufio"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for part, want := range map[float64]float64{0: 1, 0.25: 1, 0.5: 2, 0.51: 3, 0.99: 4, 1: 4} {
		if got := quantile(values, part); got != want {
			t.Errorf("%v: got %v, want %v", part, got, want)
		}
	}
	if got := medianGaps([]gaps{{1, 9}, {3, 7}, {2, 8}}); got != (gaps{2, 8}) {
		t.Errorf("got %v", got)
	}
}

func TestReadStatus(t *testing.T) {
	const two = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 4\r\nX: y\r\n\r\nbodyHTTP/1.1 200 OK\r\n\r\n"
	answers := bufio.NewReader(strings.NewReader(two))
	for _, want := range []int{401, 200} {
		if got, err := readStatus(answers); got != want || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
	for _, text := range []string{"", "HTTP/1.1 200", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"} {
		if status, err := readStatus(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q: got %d", text, status)
		}
	}
}
