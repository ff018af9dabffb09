package gpucheck

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Quantized models: their answers could be the same alone and among others.
var checkedModels = []string{"tiny-q8_0.gguf", "tiny35-q8_0.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf"}

func TestServe(t *testing.T) {
	for _, file := range checkedModels {
		for _, kv := range []string{"f16", "q8_0"} {
			t.Run(file+"/"+kv, func(t *testing.T) {
				program(t)
				s := serve(t, modelPath(t, file), "--kv-type", kv)
				t.Run("offload", func(t *testing.T) {
					if os.Getenv("B3INFER_TEST_GPU_LAYERS") == "" {
						t.Skip("B3INFER_TEST_GPU_LAYERS is not set: a run on the CPU")
					}
					s.checkOffload(t)
				})
				t.Run("health", s.testHealth)
				t.Run("answer", s.testAnswer)
				t.Run("throughput", s.testThroughput)
				t.Run("company", s.testCompany)
				t.Run("cancel", s.testCancel)
			})
		}
	}
}

// subjects make prompts that differ from their first words on.
var subjects = []string{"rivers", "bread", "copper", "glass", "chess", "owls", "tides", "maps", "snow"}

func ask(subject string, tokens int) request {
	content := fmt.Sprintf("%s: what is the most important thing to know about them, and why?", subject)
	return request{Messages: []message{{"user", content}}, MaxTokens: tokens}
}

func (s *server) testHealth(t *testing.T) {
	response, err := http.Get(strings.TrimSuffix(s.url, "/v1") + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var health struct{ Status string }
	if err := json.Unmarshal(text, &health); err != nil || response.StatusCode != http.StatusOK || health.Status != "ready" {
		t.Errorf("got %s %s", response.Status, text)
	}
}

// A greedy answer is the same streamed and whole.
func (s *server) testAnswer(t *testing.T) {
	whole, err := s.complete(t.Context(), ask("rivers", 64))
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, whole, 64)
	streamed, err := s.stream(t.Context(), ask("rivers", 64))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, streamed); diff != "" {
		t.Errorf("streamed: %s", diff)
	}
}

// checkAnswer takes an answer that ended early, or has all tokens that it may have.
func checkAnswer(t *testing.T, a answer, most int) {
	t.Helper()
	early := a.Finish == "stop" && 0 < a.Tokens && a.Tokens <= most
	if !early && (a.Finish != "length" || a.Tokens != most) {
		t.Errorf("got %d tokens of %d and finish_reason %q", a.Tokens, most, a.Finish)
	}
}

// together asks for all at the same time.
func (s *server) together(t *testing.T, requests []request) []answer {
	t.Helper()
	answers := make([]answer, len(requests))
	errs := make([]error, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() { answers[i], errs[i] = s.stream(t.Context(), r) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	}
	return answers
}

func (s *server) testThroughput(t *testing.T) {
	const tokens = 128
	for _, streams := range []int{1, 8, 32} {
		var requests []request
		for i := range streams {
			r := ask(fmt.Sprint(i, " ", subjects[i%len(subjects)]), tokens)
			r.Temperature, r.Seed = 0.8, i
			requests = append(requests, r)
		}
		start, all := time.Now(), 0
		for _, a := range s.together(t, requests) {
			checkAnswer(t, a, tokens)
			all += a.Tokens
		}
		t.Logf("result: %d streams: %.0f tokens/s", streams, float64(all)/time.Since(start).Seconds())
	}
}

// testCompany reports whether greedy answers are the same alone and among others. Kernels
// of a GPU may sum up in another order when a batch has more rows, so that is no failure.
func (s *server) testCompany(t *testing.T) {
	var requests []request
	var alone []answer
	for _, subject := range subjects {
		requests = append(requests, ask(subject, 64))
		a, err := s.stream(t.Context(), requests[len(requests)-1])
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, a)
	}
	again, err := s.stream(t.Context(), requests[0])
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i, a := range s.together(t, requests) {
		if a == alone[i] {
			same++
		} else {
			t.Logf("%s: alone %q, among others %q", subjects[i], alone[i].Text, a.Text)
		}
	}
	t.Logf("result: same answer among %d others: %d of %d; alone again: %v", len(requests)-1, same, len(requests), again == alone[0])
}

// A request whose client leaves is dropped.
func (s *server) testCancel(t *testing.T) {
	const limit = 2 * time.Second
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r := ask("time", 4000)
	r.Stream, r.Temperature = true, 0.8
	stream, err := s.post(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := bufio.NewReader(stream).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	left := time.Now()
	leave()
	for range time.Tick(2 * time.Millisecond) {
		running := s.gauge(t, "b3infer_requests_running")
		if running == 0 {
			break
		}
		if time.Since(left) > limit {
			t.Fatalf("%.0f requests run %v after the client left", running, limit)
		}
	}
	t.Logf("result: dropped %.0f ms after the client left", float64(time.Since(left).Microseconds())/1000)
}
