package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// gaps are quantiles of the times between a stream's events, in milliseconds.
type gaps struct{ p50, p99 float64 }

func (g gaps) String() string { return fmt.Sprintf("%.2f %.2f", g.p50, g.p99) }

// quantile is the smallest value that a part of all does not exceed.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// medianGaps is the median of each quantile.
func medianGaps(list []gaps) gaps {
	var p50, p99 []float64
	for _, g := range list {
		p50, p99 = append(p50, g.p50), append(p99, g.p99)
	}
	return gaps{median(p50), median(p99)}
}

// chat is a request of a stream, as it is written to a connection.
func (s *server) chat(tokens int, more string) string {
	body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"seed":1,"messages":[{"role":"user","content":"Count."}]%s}`, tokens, more)
	return s.head("POST", "/v1/chat/completions", s.key, len(body)) + body
}

func (s *server) head(method, path, key string, length int) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		method, path, s.address, key, length)
}

// streamFor reads streams, one after the other, and measures their gaps.
func (s *server) streamFor(d time.Duration) (gaps, error) {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return gaps{}, err
	}
	defer conn.Close()
	lines := bufio.NewReader(conn)
	var all []float64
	for begun := time.Now(); time.Since(begun) < d; {
		if all, err = s.streamOnce(conn, lines, s.chat(256, ""), all); err != nil {
			return gaps{}, err
		}
	}
	return gaps{quantile(all, 0.5), quantile(all, 0.99)}, nil
}

// streamOnce reads one stream and appends its gaps in milliseconds.
func (s *server) streamOnce(conn net.Conn, lines *bufio.Reader, request string, all []float64) ([]float64, error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(lines, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("stream: %s", answer.Status)
	}
	var last time.Time
	body := bufio.NewScanner(answer.Body)
	for body.Scan() {
		if !strings.HasPrefix(body.Text(), "data: {") {
			continue
		}
		now := time.Now()
		if !last.IsZero() {
			all = append(all, float64(now.Sub(last).Microseconds())/1000)
		}
		last = now
	}
	return all, body.Err()
}

// readFast asks for a stream and reads it as fast as it comes, until ctx ends.
func (s *server) readFast(ctx context.Context, tokens int) error {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // a read ends with it
	_, err = s.streamOnce(conn, bufio.NewReader(conn), s.chat(tokens, large), nil)
	return err
}
