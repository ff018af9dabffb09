package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/grammar/mask"
	"github.com/b3os/b3infer/llama"
	lru "github.com/hashicorp/golang-lru/v2"
)

// A form is what is known of an answer before it comes.
type form struct {
	envelope *grammar.Envelope // reads the answer
	texts    []string          // control texts that mean something in the answer
	// guide keeps the answer to what was asked for; nil leaves it free.
	guide *mask.Sequence
	// called: the answer is calls, and what has not become one by its end is nothing.
	called bool
	// barred are the tokens that begin calls where there must be none.
	barred []llama.TokenBias
}

// maxEnvelopes is how many forms of answers are kept: one for each set of tools and
// way of calling them. One takes about 10 kB, and 1 kB for each tool.
const maxEnvelopes = 256

// forms makes the forms of answers. It may be used by several goroutines at once.
type forms struct {
	chat      llama.Chat
	words     int                    // of a mask
	marks     map[string]llama.Token // the tokens that are not plain text
	automata  *mask.Cache
	envelopes *lru.Cache[mask.Key, *envelope]
}

// An envelope is a template's form of answers, and what it is called in the cache.
type envelope struct {
	*grammar.Envelope
	key      mask.Key
	texts    []string // control texts that mean something in the answer
	thinking bool     // reasoning is allowed in front
	// barred are the tokens that begin a call, where one token does.
	barred []llama.TokenBias
}

func newForms(v *llama.Vocab, chat llama.Chat) *forms {
	vocab := maskVocabulary(v, chat)
	envelopes, err := lru.New[mask.Key, *envelope](maxEnvelopes)
	if err != nil {
		panic(err) // only for sizes below 1
	}
	f := &forms{
		chat: chat, words: vocab.Words(), marks: make(map[string]llama.Token),
		automata:  mask.NewCache(vocab, mask.Limits{}, 0),
		envelopes: envelopes,
	}
	for t := range llama.Token(v.Len()) {
		if kind := v.Kind(t); kind == llama.KindControl || kind == llama.KindUser {
			f.marks[string(v.Piece(t))] = t
		}
	}
	return f
}

// of is the form of the answer to a request with this prompt. Errors are an *Error
// or ctx's.
func (f *forms) of(ctx context.Context, r *Request, p *llama.Prompt) (form, error) {
	if err := r.checkChoice(); err != nil {
		return form{}, err
	}
	e, err := f.envelope(r, p)
	if err != nil {
		return form{}, err
	}
	out := form{envelope: e.Envelope, texts: e.texts, called: r.Choice.Mode == ToolRequired || r.Choice.Mode == ToolNamed}
	switch {
	case r.Choice.Mode == ToolNone && len(r.Tools) > 0:
		if out.barred, err = f.bar(r, p); err != nil {
			return form{}, err
		}
	case r.callsBound() && !e.Calls():
		return form{}, r.noCalls("cannot write tool calls")
	}
	if r.bound() {
		out.guide, err = f.guide(ctx, r, e)
	}
	return out, err
}

// guide keeps an answer to what the request asks for.
func (f *forms) guide(ctx context.Context, r *Request, e *envelope) (*mask.Sequence, error) {
	a, err := f.automata.Get(ctx, r.formKey(e.key), func() (*grammar.Grammar, error) { return r.grammar(e) })
	if err != nil {
		return nil, r.blame(err)
	}
	guide, err := a.Start(nil)
	if err == nil {
		// The first mask is often the one that takes longest; the loop is not to wait for it.
		_, err = guide.Mask(make([]uint64, f.words))
	}
	if err != nil {
		return nil, r.tooComplex(err)
	}
	return guide, nil
}

// callable are the tools that the answer may call.
func (r *Request) callable() []Tool {
	if r.Choice.Mode == ToolNone {
		return nil
	}
	return r.Tools
}

// callsBound tells whether calls have to be what the request asks for.
func (r *Request) callsBound() bool {
	switch r.Choice.Mode {
	case ToolNone:
		return false
	case ToolAuto:
		return slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Strict })
	}
	return true
}

// bound tells whether an answer is kept to a form, not free.
func (r *Request) bound() bool { return r.callsBound() || r.Format.Schema != "" }

func (r *Request) checkChoice() error {
	named := func(t Tool) bool { return t.Name == r.Choice.Name }
	switch {
	case r.Choice.Mode == ToolRequired && len(r.Tools) == 0:
		return &Error{Code: CodeInvalid, Message: "tool_choice asks for a call, and there are no tools", Param: "tool_choice"}
	case r.Choice.Mode == ToolNamed && !slices.ContainsFunc(r.Tools, named):
		return &Error{Code: CodeInvalid, Message: fmt.Sprintf("tool_choice names %q, which is not among the tools", r.Choice.Name), Param: "tool_choice"}
	}
	return nil
}

// noCalls is the error for calls that the template cannot promise.
func (r *Request) noCalls(why string) *Error {
	param, ask := "tool_choice", "tool_choice auto"
	if r.Choice.Mode == ToolAuto {
		param, ask = "tools", "tools without strict"
	}
	return &Error{
		Code:    CodeUnsupported,
		Message: fmt.Sprintf("The model's chat template %s, so that they can not be promised; %s is possible", why, ask),
		Param:   param,
	}
}

// grammarTools are the tools as package grammar knows them.
func grammarTools(tools []Tool) []grammar.Tool {
	out := make([]grammar.Tool, len(tools))
	for i, t := range tools {
		schema := t.Parameters
		if schema == "" {
			schema = noArguments
		}
		out[i] = grammar.Tool{Name: t.Name, Schema: []byte(schema), Strict: t.Strict}
	}
	return out
}

// noArguments is the schema of tools that say nothing of arguments.
const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// envelope is the form of answers of the template, for the tools that may be called.
func (f *forms) envelope(r *Request, p *llama.Prompt) (*envelope, error) {
	key := r.envelopeKey(p)
	if e, ok := f.envelopes.Get(key); ok {
		return e, nil
	}
	in, err := r.envelopeInput()
	if err != nil {
		return nil, err
	}
	from, err := f.chat.Envelope(in)
	if err == nil && from.Thinking && !p.Thinking && in.Thinking {
		// The model goes on with its turn behind the results of its calls.
		in.Thinking = false
		from, err = f.chat.Envelope(in)
	}
	if err != nil {
		return nil, refused(err, "tools")
	}
	texts := append(answerTexts(p), from.Preserved...)
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	parsed, err := grammar.ParseEnvelope([]byte(from.Parser), from.Generation, texts)
	if err != nil {
		return nil, fmt.Errorf("envelope: %w", err)
	}
	parsed.Learn(from.Example)
	e := &envelope{Envelope: parsed, key: key, texts: texts, thinking: in.Thinking, barred: f.starts(from.Triggers)}
	f.envelopes.Add(key, e)
	return e, nil
}

// envelopeInput is what the template is asked for its form of answers with. Errors
// are those of the tools' schemas.
func (r *Request) envelopeInput() (llama.EnvelopeInput, error) {
	in := llama.EnvelopeInput{
		Required: r.Choice.Mode == ToolRequired || r.Choice.Mode == ToolNamed,
		Parallel: !r.OneCall, Thinking: r.Thinking,
	}
	tools := grammarTools(r.callable())
	skeleton, err := grammar.Skeleton(tools, grammar.Limits{})
	if err != nil {
		return in, r.blame(err)
	}
	for i, t := range tools {
		if err := invalid(t.Schema); err != nil {
			return in, r.blame(&grammar.ToolError{Name: t.Name, Err: err})
		}
		in.Tools = append(in.Tools, llama.ChatTool{Name: t.Name, Description: r.Tools[i].Description, Parameters: string(skeleton[i].Schema)})
	}
	return in, nil
}

// bar forbids calls, as far as one token begins them.
func (f *forms) bar(r *Request, p *llama.Prompt) ([]llama.TokenBias, error) {
	free := *r
	free.Choice = ToolChoice{}
	e, err := f.envelope(&free, p)
	if err != nil {
		return nil, err
	}
	return e.barred, nil
}

// starts forbids the tokens that are triggers of calls.
func (f *forms) starts(triggers []string) []llama.TokenBias {
	var out []llama.TokenBias
	for _, trigger := range triggers {
		if t, ok := f.marks[strings.TrimSpace(trigger)]; ok {
			out = append(out, llama.TokenBias{Token: t, Bias: float32(math.Inf(-1))})
		}
	}
	return out
}
