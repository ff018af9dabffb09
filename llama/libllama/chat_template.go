package libllama

// #include "shim_chat.h"
import "C"

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/b3os/b3infer/llama"
)

// A template is one Jinja source and what is known about it.
type template struct {
	c      *C.b3_template
	source string
	caps   llama.ChatCaps

	stringContent bool // content may be a string
	partsContent  bool // content may be a list of parts
	objectArgs    bool // arguments of calls are wanted as objects, not as JSON text
	developer     bool // the role developer is known
	fullTools     bool // tools must have a description and parameters
	systemFront   bool // several system turns may come first
	systemLater   bool // a system turn may come later
	trims         bool // texts are trimmed before they are rendered
	parsesResults bool // results of tools are read as JSON
}

// newTemplate parses a source and finds out what the template can do by
// rendering small conversations.
func newTemplate(source, bos, eos string) (*template, error) {
	source = patched(source)
	t := &template{
		source:    source,
		developer: strings.Contains(source, "<|channel|>"),
		// StepFun: blanks that are left over lead the model into loops.
		trims: strings.Contains(source, "You have access to the following functions in JSONSchema format"),
		// The first templates of Gemma 4, which common/chat feeds in another way.
		parsesResults: strings.Contains(source, "'<|tool_call>call:'") && !strings.Contains(source, "{#- OpenAI Chat Completions:"),
	}
	text := []byte(source + bos + eos)
	sizes := []C.size_t{C.size_t(len(source)), C.size_t(len(bos)), C.size_t(len(eos))}
	var caps C.uint32_t
	var cerr C.b3_error
	if code := C.b3_template_new((*C.char)(ptr(text)), &sizes[0], &t.c, &caps, &cerr); code != C.B3_OK {
		return nil, refused("%s", oneLine(C.GoString(&cerr.text[0])))
	}
	// A template is plain memory that any thread may free at any time.
	runtime.AddCleanup(t, func(c *C.b3_template) { C.b3_template_free(c) }, t.c)
	has := func(bit C.uint32_t) bool { return caps&bit != 0 }
	t.caps = llama.ChatCaps{
		System:   has(C.B3_CAP_SYSTEM),
		Tools:    has(C.B3_CAP_TOOLS),
		Calls:    has(C.B3_CAP_CALLS),
		Parallel: has(C.B3_CAP_PARALLEL),
	}
	t.stringContent, t.partsContent = has(C.B3_CAP_STRING_CONTENT), has(C.B3_CAP_PARTS_CONTENT)
	t.objectArgs = has(C.B3_CAP_OBJECT_ARGS)
	t.probe()
	return t, nil
}

// patched takes a check out of gpt-oss's template that refuses answers which
// clients send back with their channels, as common_chat_templates_init does.
func patched(source string) string {
	return strings.ReplaceAll(source, `{%- if "<|channel|>analysis<|message|>" in message.content or `+
		`"<|channel|>final<|message|>" in message.content %}`, "{%- if false %}")
}

// A rendering is what C returns for a conversation.
type rendering struct {
	prompt                         []byte
	inputs                         []span // the bytes of prompt that come from the request, in order
	generation, parser, thinkStart string
	thinkEnds, stops, preserved    []string
	triggers                       []string
	format                         int
}

// isInput tells whether a byte of the prompt comes from the request.
func (r *rendering) isInput(at int) bool {
	return slices.ContainsFunc(r.inputs, func(s span) bool { return s.from <= at && at < s.to })
}

// cut removes the first n bytes of the prompt.
func (r *rendering) cut(n int) {
	r.prompt = r.prompt[n:]
	kept := r.inputs[:0]
	for _, s := range r.inputs {
		if s.to > n {
			kept = append(kept, span{max(s.from-n, 0), s.to - n})
		}
	}
	r.inputs = kept
}

// render encodes a conversation and renders it (common_chat_templates_apply).
// images are the texts that stand for images in the prompt.
func (t *template) render(in llama.ChatInput) (*rendering, *imageMarks, error) {
	r, images, err := t.renderJoined(in)
	if err != nil {
		var found bool
		if in.Messages, found = wrapText(in.Messages); found {
			return t.renderJoined(in)
		}
	}
	return r, images, err
}

// renderJoined is render for the calls as they are.
func (t *template) renderJoined(in llama.ChatInput) (*rendering, *imageMarks, error) {
	r, images, err := t.renderOnce(in, noCalls, true)
	if err != nil && t.mustJoinSystem(in.Messages) {
		// Some count a system turn as one of those that must alternate.
		if r, images, err := t.renderOnce(in, noCalls, false); err == nil {
			return r, images, nil
		}
	}
	return r, images, err
}

// calling says which calls the parser of an answer is for.
type calling struct {
	choice   int // enum common_chat_tool_choice
	parallel bool
}

// noCalls is for prompts: they do not depend on the choice, but common/chat refuses
// some schemas where calls are possible.
var noCalls = calling{choice: C.B3_CHOICE_NONE}

func (t *template) renderOnce(in llama.ChatInput, calls calling, join bool) (*rendering, *imageMarks, error) {
	e := encoder{template: t, join: join}
	if err := e.conversation(in); err != nil {
		return nil, nil, err
	}
	var text []byte
	var sizes [C.B3_IN_COUNT]C.size_t
	for i, s := range e.inputs(in.Now) {
		text = append(text, s...)
		sizes[i] = C.size_t(len(s))
	}
	_, offset := in.Now.Zone()
	params := C.b3_render_params{
		time:       C.int64_t(in.Now.Unix()),
		zone:       C.int32_t(offset),
		thinking:   C.int32_t(cbool(in.Thinking)),
		generation: C.int32_t(cbool(!in.NoGenerationPrompt)),
		choice:     C.int32_t(calls.choice),
		parallel:   C.int32_t(cbool(calls.parallel)),
	}
	var out *C.b3_rendering
	var cerr C.b3_error
	code := C.b3_template_render(t.c, (*C.char)(ptr(text)), &sizes[0], &params, &out, &cerr)
	runtime.KeepAlive(t)
	if code != C.B3_OK {
		return nil, nil, refused("%s", oneLine(C.GoString(&cerr.text[0])))
	}
	defer C.b3_rendering_free(out)
	return copyRendering(out), &e.images, nil
}

// inputs are the texts that b3_template_render takes.
func (e *encoder) inputs(now time.Time) [C.B3_IN_COUNT][]byte {
	zone, _ := now.Zone()
	return [C.B3_IN_COUNT][]byte{
		C.B3_IN_MESSAGES: e.messages,
		C.B3_IN_TOOLS:    e.tools,
		C.B3_IN_NUMBER:   []byte(e.number),
		C.B3_IN_DATE:     []byte(now.Format("02 Jan 2006")),
		C.B3_IN_DATETIME: []byte(now.Format("Jan 02 2006")),
		C.B3_IN_ZONE:     []byte(zone),
	}
}

// textsOf copies the texts that C gives end to end, one with each call.
func textsOf(text unsafe.Pointer, sizes *C.size_t) func() []byte {
	at, texts := uintptr(0), 0
	return func() []byte {
		n := *(*C.size_t)(unsafe.Add(unsafe.Pointer(sizes), texts*C.sizeof_size_t))
		b := C.GoBytes(unsafe.Add(text, at), C.int(n))
		at += uintptr(n)
		texts++
		return b
	}
}

func copyRendering(c *C.b3_rendering) *rendering {
	next := textsOf(unsafe.Pointer(c.text), c.sizes)
	list := func(n C.size_t) []string {
		var out []string
		for range n {
			out = append(out, string(next()))
		}
		return out
	}
	r := &rendering{prompt: next(), generation: string(next()), parser: string(next()), thinkStart: string(next())}
	r.thinkEnds, r.stops, r.preserved = list(c.ends), list(c.stops), list(c.preserved)
	r.triggers, r.format = list(c.triggers), int(c.format)
	for _, s := range unsafe.Slice((*[2]C.size_t)(unsafe.Pointer(c.inputs)), c.ranges) {
		r.inputs = append(r.inputs, span{int(s[0]), int(s[1])})
	}
	return r
}

// engineTrace is how llama.cpp's engine reports an error: with an excerpt of
// the source, over many lines.
var engineTrace = regexp.MustCompile(`(?s)^.*While executing \S+ at (line \d+, column \d+) in source:.*\nError: (.*)$`)

// oneLine makes one line of an error's text.
func oneLine(text string) string {
	if m := engineTrace.FindStringSubmatch(text); m != nil {
		text = m[1] + ": " + m[2]
	}
	return strings.Join(strings.Fields(text), " ")
}
