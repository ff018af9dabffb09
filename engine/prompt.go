package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/b3os/b3infer/llama"
)

// Prepared is a request that has passed every check that needs the model. It
// is for one Generate.
type Prepared struct {
	prompt    llama.Prompt
	tokens    []llama.Token
	stops     []string
	maxTokens int
	sampling  llama.Sampling
	seed      uint64
	bias      []llama.TokenBias
	form      form
	budget    *thinkBudget // nil: none
	top       int8         // likeliest tokens to report, -1: no logprobs
	arrived   time.Time
	render    time.Duration

	generation *generation // of its Generate; nil until then
}

// PromptTokens is the length of the rendered prompt.
func (p *Prepared) PromptTokens() int { return len(p.tokens) }

// Prompt is what the model's template made of the request.
func (p *Prepared) Prompt() llama.Prompt { return p.prompt }

// Tokens are the prompt's tokens. The caller must not change them.
func (p *Prepared) Tokens() []llama.Token { return p.tokens }

// Prepare renders and tokenizes a request and checks what needs the model: the
// template, the form of the answer, the length, the tokens of the bias. It works in the caller's
// goroutine, and any number of them may. Errors are an *Error, or ctx's.
func (e *Engine) Prepare(ctx context.Context, r *Request) (*Prepared, error) {
	p, err := e.render(ctx, r)
	if err != nil {
		return nil, err
	}
	if p.form, err = e.forms.of(ctx, r, &p.prompt); err != nil {
		return nil, err
	}
	if n, err := e.startTokens(p.prompt.Parts); err != nil {
		return nil, err
	} else if n >= e.info.Context {
		return nil, e.tooLong("more than ", n)
	}
	if err := e.tokenize(ctx, p); err != nil {
		return nil, err
	}
	if n := len(p.tokens); n >= e.info.Context {
		return nil, e.tooLong("", n)
	}
	p.maxTokens = e.info.Context - len(p.tokens)
	if r.MaxTokens > 0 {
		p.maxTokens = min(p.maxTokens, r.MaxTokens)
	}
	p.sampling = r.Sampling.resolve(e.info.Model.Sampling)
	p.seed = r.Sampling.seed()
	if p.bias, err = tokenBias(r.Sampling.Bias, e.model.Vocab()); err != nil {
		return nil, err
	}
	p.bias = barred(p.bias, p.form.barred)
	p.budget, err = e.thinkBudget(r, p)
	return p, err
}

// Count is Prepare for a prompt that is only measured: its length has no limit,
// and Generate is not for it.
func (e *Engine) Count(ctx context.Context, r *Request) (*Prepared, error) {
	p, err := e.render(ctx, r)
	if err != nil {
		return nil, err
	}
	return p, e.tokenize(ctx, p)
}

func (e *Engine) render(ctx context.Context, r *Request) (*Prepared, error) {
	began := time.Now()
	p := &Prepared{stops: r.Stop, top: r.top(), arrived: r.Arrived}
	if p.arrived.IsZero() {
		p.arrived = began
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	if p.prompt, err = renderChat(e.chat, r.chatInput(began)); err != nil {
		return nil, refused(err, "messages")
	}
	p.render = time.Since(began)
	return p, nil
}

func (e *Engine) tokenize(ctx context.Context, p *Prepared) (err error) {
	began := time.Now()
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.tokens, err = e.model.Tokenize(nil, p.prompt.Parts, true); err != nil {
		return fmt.Errorf("tokenize: %w", err)
	}
	if len(p.tokens) == 0 {
		return &Error{Code: CodeInvalid, Message: "The model's chat template makes an empty prompt of this conversation", Param: "messages"}
	}
	p.render += time.Since(began)
	return nil
}

// startBytes is how many bytes for each token of the context startTokens takes.
const startBytes = 8

// startTokens is how many tokens the start of a long prompt has, so that one that is
// much too long is refused without tokenizing all of it; 0 if the prompt is shorter.
func (e *Engine) startTokens(parts []llama.Part) (int, error) {
	room := startBytes * e.info.Context
	for i, p := range parts {
		if room -= len(p.Text); room < 0 {
			start := slices.Clone(parts[:i+1])
			start[i].Text = p.Text[:len(p.Text)+room]
			tokens, err := e.model.Tokenize(nil, start, true)
			if err != nil {
				return 0, fmt.Errorf("tokenize: %w", err)
			}
			return len(tokens), nil
		}
	}
	return 0, nil
}

// tooLong is the error for a prompt of n tokens, or more.
func (e *Engine) tooLong(than string, n int) *Error {
	return &Error{
		Code: CodeContext,
		Message: fmt.Sprintf("The prompt has %s%d tokens; this model's context is %d tokens, of which at least one is for the answer",
			than, n, e.info.Context),
		Param: "messages",
	}
}

// refused is the error for a conversation or tools that the template does not take.
func refused(err error, param string) error {
	if !errors.Is(err, llama.ErrTemplate) {
		return fmt.Errorf("render: %w", err)
	}
	return &Error{
		Code:    CodeInvalid,
		Message: fmt.Sprintf("The model's chat template does not take this conversation: %v", err),
		Param:   param,
	}
}

func (r *Request) chatInput(now time.Time) llama.ChatInput {
	in := llama.ChatInput{Thinking: r.Thinking, Now: now, Messages: make([]llama.ChatMessage, len(r.Messages))}
	for i, m := range r.Messages {
		to := llama.ChatMessage{Role: string(m.Role), Name: m.Name, Reasoning: m.Reasoning, ToolCallID: m.CallID}
		for _, text := range m.Content {
			to.Content = append(to.Content, llama.ChatPart{Text: text})
		}
		for _, c := range m.Calls {
			to.Calls = append(to.Calls, llama.ChatCall(c))
		}
		in.Messages[i] = to
	}
	for _, t := range r.Tools {
		in.Tools = append(in.Tools, llama.ChatTool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return in
}

// resolve fills what the client left open with what the model's file
// recommends, and that with neutral values.
func (s Sampling) resolve(d llama.SamplingDefaults) llama.Sampling {
	topK := int32(0)
	if d.TopK != nil {
		topK = *d.TopK
	}
	if s.TopK != nil {
		topK = int32(min(max(*s.TopK, 0), math.MaxInt32))
	}
	out := llama.Sampling{
		Temperature: choose(s.Temperature, d.Temperature, 1),
		TopK:        topK,
		TopP:        max(choose(s.TopP, d.TopP, 1), minTopP),
		MinP:        choose(s.MinP, d.MinP, 0),
		Presence:    choose(s.Presence, nil, 0),
		Frequency:   choose(s.Frequency, nil, 0),
		Repetition:  choose(s.Repetition, d.RepetitionPenalty, 1),
	}
	return out
}

// minTopP stands for a top_p of 0: only the likeliest token.
const minTopP = 1e-9

func choose(client *float64, model *float32, neutral float32) float32 {
	switch {
	case client != nil:
		return float32(*client)
	case model != nil:
		return *model
	}
	return neutral
}

// seed is the client's, or a random one.
func (s Sampling) seed() uint64 {
	if s.Seed != nil {
		return uint64(*s.Seed)
	}
	var b [8]byte
	rand.Read(b[:]) // never fails, says its documentation
	return binary.LittleEndian.Uint64(b[:])
}

// penalized tells that a penalty looks at token counts.
func penalized(s llama.Sampling) bool {
	return s.Presence != 0 || s.Frequency != 0 || s.Repetition != 1 && s.Repetition != 0
}

// thinkBudget bounds the reasoning of an answer, if that is asked for or needed, and
// the template has a text that ends it.
func (e *Engine) thinkBudget(r *Request, p *Prepared) (*thinkBudget, error) {
	left := r.ThinkingBudget
	if left <= 0 && p.form.guide != nil {
		left = p.maxTokens / 2
	}
	meter := newThinkMeter(&p.prompt)
	if left <= 0 || meter.over() {
		return nil, nil
	}
	end := llama.Part{Text: []byte(p.prompt.ThinkEnd[0]), Special: true}
	closing, err := e.model.Tokenize(nil, []llama.Part{end}, false)
	if err != nil {
		return nil, fmt.Errorf("tokenize: %w", err)
	}
	return &thinkBudget{meter: meter, left: left, closing: closing}, nil
}

// barred adds the tokens that must not come to a bias.
func barred(bias, barred []llama.TokenBias) []llama.TokenBias {
	for _, b := range barred {
		bias = slices.DeleteFunc(bias, func(other llama.TokenBias) bool { return other.Token == b.Token })
		bias = append(bias, b)
	}
	return bias
}

// tokenBias checks and orders the client's biases.
func tokenBias(bias map[int]float64, v *llama.Vocab) ([]llama.TokenBias, error) {
	var out []llama.TokenBias
	for _, id := range slices.Sorted(maps.Keys(bias)) {
		if id < 0 || id >= v.Len() {
			return nil, &Error{
				Code:    CodeInvalid,
				Message: fmt.Sprintf("logit_bias.%d names a token that the vocabulary does not have; its tokens are 0 to %d", id, v.Len()-1),
				Param:   fmt.Sprintf("logit_bias.%d", id),
			}
		}
		out = append(out, llama.TokenBias{Token: llama.Token(id), Bias: float32(bias[id])})
	}
	return out, nil
}
