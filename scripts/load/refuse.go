package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A refusal is a request that is refused with a status.
type refusal struct {
	status  int
	request string
}

func refusals(s *server) []refusal {
	const body, bad = `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`, `{"model":"m","messages":[],"temperature":9}`
	const missing = `{"model":"other","messages":[{"role":"user","content":"Hi"}]}`
	const path = "/v1/chat/completions"
	unknown := "b3os_sk_00000000000000000000000000000000_0000000"
	return []refusal{
		{401, s.head("POST", path, unknown, len(body)) + body},
		{400, s.head("POST", path, s.key, len(bad)) + bad},
		{404, s.head("POST", path, s.key, len(missing)) + missing},
	}
}

// refuseFor measures a stream while connections send requests that are refused, so
// many a second (0 is as many as they can), and how many there were.
func (s *server) refuseFor(o options, r refusal, rate int) (g gaps, perSecond float64, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var count atomic.Int64
	var group sync.WaitGroup
	failed := make(chan error, o.connections)
	for range o.connections {
		group.Go(func() { failed <- s.refuseUntil(ctx, r, float64(rate)/float64(o.connections), &count) })
	}
	begun := time.Now()
	g, err = s.streamFor(o.time)
	perSecond = float64(count.Load()) / time.Since(begun).Seconds()
	cancel()
	group.Wait()
	for range o.connections {
		if failure := <-failed; err == nil {
			err = failure
		}
	}
	return g, perSecond, err
}

// refuseUntil sends one request after the other on one connection until ctx ends.
func (s *server) refuseUntil(ctx context.Context, r refusal, rate float64, count *atomic.Int64) error {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	begun := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		if rate > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
		}
		if _, err := io.WriteString(conn, r.request); err != nil {
			return err
		}
		status, err := readStatus(answers)
		if err != nil || status != r.status {
			return fmt.Errorf("got status %d, want %d: %w", status, r.status, err)
		}
		count.Add(1)
	}
	return nil
}

// readStatus reads an answer whose length its head tells, for less than net/http does.
func readStatus(answers *bufio.Reader) (status int, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := answers.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case first && len(line) >= 12:
			status, err = strconv.Atoi(string(line[9:12]))
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		case len(line) == 0:
			_, err := answers.Discard(length)
			return status, err
		}
		if err != nil {
			return 0, err
		}
	}
}
