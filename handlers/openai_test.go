package handlers

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// These tests are the official SDK against a real connection.

func sdk(t *testing.T, h http.Handler, options ...option.RequestOption) openai.Client {
	t.Helper()
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL("http://" + listen(t, h) + "/v1/infer"), // C330, and C002 but for the port
		option.WithAPIKey("key"), option.WithMaxRetries(0)}, options...)...)
}

func question() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    testModel,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Name one river in Oregon.")},
	}
}

func keyed(c *Config) { c.Keys = []string{"key"} }

func TestContractC331_C334_SDKText(t *testing.T) {
	client := sdk(t, serve(t, says("The", " Rogue."), keyed))
	got, err := client.Chat.Completions.New(t.Context(), question())
	if err != nil {
		t.Fatal(err)
	}
	choice := got.Choices[0]
	if choice.Message.Content != "The Rogue." || choice.FinishReason != "stop" || got.Usage.TotalTokens != 20 ||
		got.Usage.PromptTokensDetails.CachedTokens != 8 {
		t.Errorf("got %s", got.RawJSON())
	}
}

func TestContractC331_SDKStream(t *testing.T) {
	client := sdk(t, serve(t, says("The", " Rogue."), keyed))
	params := question()
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	sum, _ := streamed(t, &client, params)
	if sum.Choices[0].Message.Content != "The Rogue." || sum.Choices[0].FinishReason != "stop" || sum.Usage.TotalTokens != 20 {
		t.Errorf("got %+v", sum)
	}
}

func TestContractC335_SDKErrors(t *testing.T) {
	tooLong := &engine.Error{Code: engine.CodeContext, Message: "5000 tokens > 4096", Param: "messages"}
	for _, c := range []struct {
		name   string
		engine *script
		key    string
		change func(*openai.ChatCompletionNewParams)
		want   openai.Error
	}{
		{"400", says("Hi"), "key", func(p *openai.ChatCompletionNewParams) { p.Temperature = param.NewOpt(3.0) },
			openai.Error{StatusCode: 400, Code: "invalid_request", Param: "temperature", Type: badRequest,
				Message: "temperature must be between 0 and 2"}},
		{"400_context", &script{refuse: tooLong}, "key", func(*openai.ChatCompletionNewParams) {},
			openai.Error{StatusCode: 400, Code: "context_length_exceeded", Param: "messages", Type: badRequest, Message: "5000 tokens > 4096"}},
		{"401", says("Hi"), "other", func(*openai.ChatCompletionNewParams) {},
			openai.Error{StatusCode: 401, Code: "unauthorized", Type: "authentication_error",
				Message: "this API key is not known; check that it belongs to this server"}},
		{"404", says("Hi"), "key", func(p *openai.ChatCompletionNewParams) { p.Model = "gpt-5" },
			openai.Error{StatusCode: 404, Code: "model_not_available", Param: "model", Type: badRequest,
				Message: "gpt-5 is not served on this node; GET /v1/infer/models lists the models that are"}},
		{"503", &script{broken: failing(engine.CodeOverloaded)}, "key", func(*openai.ChatCompletionNewParams) {},
			openai.Error{StatusCode: 503, Code: "capacity_unavailable", Type: "server_error", Message: "it failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := question()
			c.change(&params)
			client := sdk(t, serve(t, c.engine, keyed), option.WithAPIKey(c.key))
			_, err := client.Chat.Completions.New(t.Context(), params)
			got, ok := errors.AsType[*openai.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(fieldsOf(&c.want), fieldsOf(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !requestID.MatchString(got.Response.Header.Get("x-request-id")) {
				t.Error("no request id")
			}
		})
	}
}

func fieldsOf(e *openai.Error) []any { return []any{e.StatusCode, e.Code, e.Param, e.Type, e.Message} }

func TestContractC336_SDKStreamError(t *testing.T) {
	e := says("The")
	e.events, e.broken = e.events[:2], failing(engine.CodeUnavailable)
	stream := sdk(t, serve(t, e)).Chat.Completions
	got := stream.NewStreaming(t.Context(), question())
	n := 0
	for got.Next() {
		n++
	}
	if n != 2 || got.Err() == nil {
		t.Errorf("%d chunks, error %v", n, got.Err())
	}
}

// The SDK waits for Retry-After before it tries again.
func TestContractC337_SDKRetries(t *testing.T) {
	t.Parallel() // it waits
	h := serve(t, nil)
	answers := 0
	var waits []time.Duration
	last := time.Now()
	client := sdk(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waits = append(waits, time.Since(last))
		last = time.Now()
		if answers++; answers == 2 {
			h.model.Serve(says("Hi"))
		}
		h.ServeHTTP(w, r)
	}), option.WithMaxRetries(1), option.WithMiddleware(soon))
	got, err := client.Chat.Completions.New(t.Context(), question())
	if err != nil || got.Choices[0].Message.Content != "Hi" {
		t.Fatalf("%v after %v", err, waits)
	}
	if len(waits) != 2 || waits[1] < time.Second {
		t.Errorf("the requests came after %v", waits)
	}
}

// A limit that time helps is waited for; one that no request of this size fits is not.
func TestContractC337_SDKLimits(t *testing.T) {
	t.Parallel() // it waits
	tries := 0
	counted := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tries++
			h.ServeHTTP(w, r)
		})
	}
	busy := &script{events: says("Hi").events[:2], hang: make(chan struct{})}
	h := limited(t, busy, map[accounts.Rule]int64{accounts.RequestsInFlight: 1})
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		newRecorder(h, post(chatPath, chatBody("")).WithContext(ctx))
	}()
	until(t, func() bool { return busy.asked.Load() > 0 })
	h.model.Serve(says("Hi"))
	begun := time.Now()
	time.AfterFunc(100*time.Millisecond, leave)
	client := sdk(t, counted(h), option.WithMaxRetries(1))
	got, err := client.Chat.Completions.New(t.Context(), question())
	if err != nil || got.Choices[0].Message.Content != "Hi" || tries != 2 || time.Since(begun) < time.Second {
		t.Errorf("%v after %d tries and %v", err, tries, time.Since(begun))
	}
	<-first
	tries = 0
	small := limited(t, says("Hi"), map[accounts.Rule]int64{accounts.TokensPerMinute: 100})
	client = sdk(t, counted(small), option.WithMaxRetries(3))
	_, err = client.Chat.Completions.New(t.Context(), question())
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 429 || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// soon shortens the server's wait, so that the test does not take as long.
func soon(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	answer, err := next(r)
	if err == nil && answer.Header.Get("Retry-After") == "5" {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, err
}

func TestContractC330_SDKModels(t *testing.T) {
	client := sdk(t, serve(t, says("Hi"), keyed))
	page, err := client.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Data) != 1 || page.Data[0].ID != testModel {
		t.Errorf("got %s", page.RawJSON())
	}
	one, err := client.Models.Get(t.Context(), testModel)
	if err != nil || one.OwnedBy != "b3os" {
		t.Errorf("%v, %+v", err, one)
	}
}

// Closing the SDK's stream ends the generation.
func TestSDKCancel(t *testing.T) {
	e := &script{events: says("Hi").events[:2], hang: make(chan struct{})}
	client := sdk(t, serve(t, e))
	ctx, cancel := context.WithCancel(t.Context())
	stream := client.Chat.Completions.NewStreaming(ctx, question())
	for range 2 {
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
	}
	cancel()
	<-e.hang
}
