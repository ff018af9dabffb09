//go:build cgo

package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama"
)

var topics = []string{
	"rivers", "bread", "the moon", "chess", "bees", "glass", "trains", "salt", "maps", "clocks",
	"wind", "paper", "bridges", "ink", "ants", "rain", "gold", "soap", "kites", "stone",
}

// question asks for an answer of 64 tokens, drawn greedily.
func question(model llama.Model, topic string) *engine.Request {
	r := &engine.Request{
		Messages:  []engine.Message{{Role: engine.RoleUser, Content: []string{"Write a few sentences about " + topic + "."}}},
		MaxTokens: 64,
		Sampling:  engine.Sampling{Temperature: new(0.0), Bias: make(map[int]float64)},
	}
	for _, end := range model.Vocab().Ends() {
		r.Sampling.Bias[int(end)] = -100
	}
	return r
}

func prepare(t *testing.T, e *engine.Engine, r *engine.Request) *engine.Prepared {
	t.Helper()
	p, err := e.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answer is the text of a request's answer. started, if not nil, is called with
// its first event.
func answer(t *testing.T, e *engine.Engine, p *engine.Prepared, started func()) string {
	text := ""
	for ev, err := range e.Generate(t.Context(), p) {
		if err != nil {
			t.Error(err)
		}
		switch ev := ev.(type) {
		case engine.First:
			if started != nil {
				started()
			}
		case engine.Text:
			text += ev.Text
		}
	}
	return text
}

// realEngine makes an engine over the real model with so many cells. stop ends
// it and returns how often a sequence was preempted.
func realEngine(t *testing.T, model llama.Model, p engine.Params, cells int) (e *engine.Engine, stop func() int) {
	t.Helper()
	registry := prometheus.NewRegistry()
	p.Cells, p.Threads, p.Metrics, p.Log = cells, 1, registry, slog.New(slog.DiscardHandler)
	e, err := engine.New(model, p)
	if err != nil {
		t.Fatal(err)
	}
	return e, func() int {
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, f := range families {
			if f.GetName() == "b3infer_preemptions_total" {
				return int(f.Metric[0].GetCounter().GetValue())
			}
		}
		t.Error("preemptions are not counted")
		return 0
	}
}

// answers asks questions at the same time, of a new engine: with cells in use, new
// tokens may land in another order, and then rounding differs.
func answers(t *testing.T, model llama.Model, params engine.Params, topics []string) map[string]string {
	t.Helper()
	e, stop := realEngine(t, model, params, 2048)
	defer stop()
	all := make(map[string]string)
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, topic := range topics {
		p := prepare(t, e, question(model, topic))
		group.Go(func() {
			text := answer(t, e, p, nil)
			mu.Lock()
			defer mu.Unlock()
			all[topic] = text
		})
	}
	group.Wait()
	return all
}

// preempted asks a question while an earlier request takes the cells, so that it
// is preempted in the middle of its answer, loses its cells, and is computed again.
func preempted(t *testing.T, model llama.Model, params engine.Params, topic string) string {
	t.Helper()
	e, stop := realEngine(t, model, params, 256)
	earlier := question(model, "everything"+strings.Repeat(", and more", 56))
	first, second := prepare(t, e, earlier), prepare(t, e, question(model, topic))
	var group sync.WaitGroup
	started := make(chan struct{})
	group.Go(func() { answer(t, e, first, func() { close(started) }) })
	<-started
	text := answer(t, e, second, nil)
	group.Wait()
	if n := stop(); n != 1 {
		t.Errorf("%s: %d preemptions, want 1", topic, n)
	}
	return text
}

// With flash attention and quantized weights and cache llama.cpp computes a row the
// same whatever else is in the batch, so an answer is the same alone and among others.
func TestSameAnswerAloneAndAmongOthers(t *testing.T) {
	model := loadModel(t, realModelPath(t))
	for group := range slices.Chunk(slices.Concat(topics, topics[:7]), 9) {
		for topic, text := range answers(t, model, quantized, group) {
			alone := answers(t, model, quantized, []string{topic})[topic]
			if len(alone) < 64 {
				t.Errorf("%s: the answer is %q", topic, alone)
			}
			if diff := cmp.Diff(alone, text); diff != "" {
				t.Errorf("%s (-alone +among others):\n%s", topic, diff)
			}
		}
		if testing.Short() {
			break
		}
	}
}

// An answer that was preempted is the same, too, as long as its cells lie in the order
// of its tokens, as they do not always: llama.cpp takes any that are free, and which
// are depends on what the machine does besides. So this is asked for by name.
func TestSameAnswerAloneAndPreempted(t *testing.T) {
	if os.Getenv("B3INFER_SAME_ANSWERS") == "" {
		t.Skip("B3INFER_SAME_ANSWERS is not set: on a busy machine cells may lie in another order, and answers differ")
	}
	model := loadModel(t, realModelPath(t))
	for _, topic := range topics {
		alone := answers(t, model, quantized, []string{topic})[topic]
		if diff := cmp.Diff(alone, preempted(t, model, quantized, topic)); diff != "" {
			t.Errorf("%s (-alone +preempted):\n%s", topic, diff)
		}
	}
}

// quantized is flash attention over a quantized cache; the real model's weights are quantized, too.
var quantized = engine.Params{KV: llama.KVQ8_0}

// loadModel loads a model until the test ends.
func loadModel(t *testing.T, path string) llama.Model {
	t.Helper()
	backend, err := openBackend(slog.New(slog.DiscardHandler), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	model, err := backend.Load(path, llama.ModelParams{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}
