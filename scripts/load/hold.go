package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// perConnection is the growth of the server's memory for each of n connections.
func perConnection(before, after int64, n int) string {
	return fmt.Sprintf("%.1f KiB", float64(after-before)/float64(n)/1024)
}

// printIdle holds connections that have had an answer and ask nothing more.
func (s *server) printIdle(o options) error {
	var before, after int64
	err := s.compare(o, fmt.Sprintf("%d idle connections", o.idle), func() (func(), error) {
		var conns []net.Conn
		release := func() {
			for _, conn := range conns {
				conn.Close()
			}
		}
		var err error
		if before, err = s.memory(); err != nil {
			return nil, err
		}
		for range o.idle {
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				release()
				return nil, fmt.Errorf("after %d connections: %w", len(conns), err)
			}
			conns = append(conns, conn)
			if _, err := io.WriteString(conn, s.head("GET", "/healthz", s.key, 0)); err != nil {
				return nil, err
			}
			if status, err := readStatus(bufio.NewReader(conn)); err != nil || status != 200 {
				return nil, fmt.Errorf("got status %d: %w", status, err)
			}
		}
		after, err = s.memory()
		return release, err
	})
	if err == nil {
		fmt.Printf("    memory for each: %s\n", perConnection(before, after, o.idle))
	}
	return err
}

// With top_logprobs a token is about two kilobytes, so that an answer is larger than
// what the system keeps for a connection.
const (
	slowTokens = 128
	large      = `,"logprobs":true,"top_logprobs":20`
)

// readSlowly asks for a stream and reads a little of it every second, until ctx ends.
func (s *server) readSlowly(ctx context.Context, tokens int) error {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, s.chat(tokens, large)); err != nil {
		return err
	}
	piece := make([]byte, 1<<10)
	for {
		if _, err := conn.Read(piece); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// printSlow holds streams that are read so slowly that their answers, all generated,
// wait in the server.
func (s *server) printSlow(o options) error {
	var before, after int64
	var took time.Duration
	failed := make(chan error, o.slow)
	err := s.compare(o, fmt.Sprintf("%d slow readers, all generated", o.slow), func() (func(), error) {
		var err error
		if before, err = s.memory(); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		var group sync.WaitGroup
		release := func() {
			cancel()
			group.Wait()
		}
		begun := time.Now()
		for range o.slow {
			group.Go(func() { failed <- s.readSlowly(ctx, slowTokens) })
			time.Sleep(5 * time.Millisecond)
		}
		for busy := true; busy && err == nil; time.Sleep(100 * time.Millisecond) {
			busy, err = s.busy()
		}
		took = time.Since(begun)
		if err == nil {
			after, err = s.memory()
		}
		return release, err
	})
	if err != nil {
		return err
	}
	for range o.slow {
		if failure := <-failed; failure != nil {
			return fmt.Errorf("a slow reader was cut off: %w", failure)
		}
	}
	fmt.Printf("    memory for each: %s; generated within %v\n", perConnection(before, after, o.slow), took.Round(time.Second))
	return nil
}

// printReaders compares the stream beside running answers that are read fast with the
// same beside ones that are read slowly: there must be no difference.
func (s *server) printReaders(o options) error {
	const readers, tokens = 8, 2000
	hold := func(read func(context.Context, int) error) func() {
		ctx, cancel := context.WithCancel(context.Background())
		var group sync.WaitGroup
		for range readers {
			group.Go(func() {
				for ctx.Err() == nil {
					if read(ctx, tokens) != nil {
						return
					}
				}
			})
		}
		time.Sleep(200 * time.Millisecond) // until all run
		return func() {
			cancel()
			group.Wait()
		}
	}
	var fast, slow []gaps
	for range o.rounds {
		for _, kind := range []struct {
			list *[]gaps
			read func(context.Context, int) error
		}{
			{&fast, s.readFast},
			{&slow, s.readSlowly},
		} {
			release := hold(kind.read)
			g, err := s.streamFor(o.time)
			release()
			if err != nil {
				return err
			}
			*kind.list = append(*kind.list, g)
		}
	}
	printRow(fmt.Sprintf("%d running, read slowly (alone: read fast)", readers), 0, medianGaps(fast), medianGaps(slow))
	return nil
}
