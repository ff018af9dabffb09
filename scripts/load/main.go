// Command load measures what b3infer bears on one computer: how many requests it refuses
// in a second, what idle connections and slow readers cost, and what a stream that runs
// beside all that notices. It starts the server itself:
//
//	go run ./scripts/load --program bin/b3infer --model tiny.gguf
//
// Load and server share the computer, so the figures are of both together. Each measurement
// is taken several times, in turn with one of the stream alone; the median is told.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the flags.
type options struct {
	program, model string
	rounds         int
	time           time.Duration
	connections    int
	rate           int
	idle, slow     int
}

func main() {
	var o options
	flag.StringVar(&o.program, "program", "bin/b3infer", "the server's `file`")
	flag.StringVar(&o.model, "model", os.Getenv("B3INFER_TEST_MODELS")+"/tiny.gguf", "the model's `file`")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each measurement is taken")
	flag.DurationVar(&o.time, "time", 4*time.Second, "how long a measurement takes")
	flag.IntVar(&o.connections, "connections", 16, "how many connections send requests that are refused")
	flag.IntVar(&o.rate, "rate", 2500, "refused `requests` a second beside the stream")
	flag.IntVar(&o.idle, "idle", 5000, "how many idle connections are held")
	flag.IntVar(&o.slow, "slow", 500, "how many streams are read slowly")
	flag.Parse()
	if err := measure(o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// measure takes all measurements and prints them, each of a new server, so that
// what one has taken of memory is not in the next.
func measure(o options) error {
	fmt.Printf("stream: gaps between its events, p50 and p99 in ms; medians of %d rounds of %v\n\n", o.rounds, o.time)
	fmt.Printf("%-44s %9s  %15s  %15s  %5s\n", "load", "requests", "alone", "beside it", "p99")
	for _, print := range []func(*server, options) error{
		(*server).printRefusals, (*server).printIdle, (*server).printReaders, (*server).printSlow,
	} {
		s, err := start(o.program, o.model)
		if err != nil {
			return err
		}
		err = print(s, o)
		s.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// printRow prints one line of the table; rate is that of requests, if there are any.
func printRow(load string, rate float64, alone, beside gaps) {
	requests := ""
	if rate > 0 {
		requests = fmt.Sprintf("%.0f/s", rate)
	}
	fmt.Printf("%-44s %9s  %15v  %15v  %4.2fx\n", load, requests, alone, beside, beside.p99/alone.p99)
}

func (s *server) printRefusals(o options) error {
	for _, r := range refusals(s) {
		for _, rate := range []int{o.rate, 0} {
			if err := s.printRefused(o, r, rate); err != nil {
				return err
			}
		}
	}
	return nil
}

// printRefused measures the stream beside requests that are refused.
func (s *server) printRefused(o options, r refusal, rate int) error {
	alone, beside, rates := []gaps{}, []gaps{}, []float64{}
	for range o.rounds {
		quiet, err := s.streamFor(o.time)
		if err != nil {
			return err
		}
		loud, n, err := s.refuseFor(o, r, rate)
		if err != nil {
			return err
		}
		alone, beside, rates = append(alone, quiet), append(beside, loud), append(rates, n)
	}
	name := fmt.Sprintf("%d, %d connections, at full speed", r.status, o.connections)
	if rate > 0 {
		name = fmt.Sprintf("%d, %d connections, at %d a second", r.status, o.connections, rate)
	}
	printRow(name, median(rates), medianGaps(alone), medianGaps(beside))
	return nil
}

// compare measures the stream before, while and after a load is held.
func (s *server) compare(o options, load string, hold func() (release func(), err error)) error {
	var alone, beside []gaps
	measure := func(list *[]gaps, rounds int) error {
		for range rounds {
			g, err := s.streamFor(o.time)
			if err != nil {
				return err
			}
			*list = append(*list, g)
		}
		return nil
	}
	if err := measure(&alone, (o.rounds+1)/2); err != nil {
		return err
	}
	release, err := hold()
	if err != nil {
		return err
	}
	err = measure(&beside, o.rounds)
	release()
	if err != nil {
		return err
	}
	if err := measure(&alone, o.rounds/2); err != nil {
		return err
	}
	printRow(load, 0, medianGaps(alone), medianGaps(beside))
	return nil
}
