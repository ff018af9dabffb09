//go:build cgo

package libllama

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
)

func newTestTemplate(t testing.TB, source string) *chat {
	t.Helper()
	c, err := NewTemplate(source, testBOS, testEOS)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*chat)
}

func user(text string) []llama.ChatMessage { return []llama.ChatMessage{said("user", text)} }

// called is a conversation with one call of these arguments.
func called(arguments string) []llama.ChatMessage {
	call := llama.ChatCall{ID: "call1", Name: "run", Arguments: arguments}
	return []llama.ChatMessage{said("user", "Go."), {Role: "assistant", Calls: []llama.ChatCall{call}}}
}

// jinjaCases are expressions and what Jinja2 prints for them, with x being the
// arguments below.
var jinjaCases = []struct{ expression, want string }{
	{"x.third", "0.3333333333333333"},
	{"x.tiny", "1e-07"},
	{"x.huge", "1.5e+22"},
	{"x.whole", "1500.0"},
	{"x.whole|tojson", "1500.0"},
	{"x.sixteen", "1e+16"},
	{"x.small", "0.0001"},
	{"x.wide", "12345678901234567890"},
	{"x.wide|tojson", "12345678901234567890"},
	{"x.minus", "-0.0"},
	{"x.inf", "inf"},
	{"x.inf|tojson", "Infinity"},
	{"x.wide is number", "True"},
	{"x.wide > 5", "True"},
	{"x.none", "None"},
	{"x.none|tojson", "null"},
	{"x.none ~ '!'", "None!"},
	{"x.none|default('d')", "None"},
	{"x.none|default('d', true)", "d"},
	{"x.absent|default('d')", "d"},
	{"x.yes", "True"},
	{"x.yes|tojson", "true"},
	{"x.list", "[1, 'two', [3.5, {'k': 'v'}], {}, None]"},
	{"x.list|tojson", `[1, "two", [3.5, {"k": "v"}], {}, null]`},
	{"x.list|tojson(indent=2)", "[\n  1,\n  \"two\",\n  [\n    3.5,\n    {\n      \"k\": \"v\"\n    }\n  ],\n  {},\n  null\n]"},
	{"x.list|tojson(separators=(',', ':'))", `[1,"two",[3.5,{"k":"v"}],{},null]`},
	{"x.names|tojson(sort_keys=true)", `{"Mid": 2, "alpha": 1, "zeta": 3}`},
	{"x.text|tojson(ensure_ascii=true)", `"Gr\u00fc\u00dfe \ud83d\ude00"`},
	{"x.quotes", `it's "one"`},
	{"[x.quotes]", `['it\'s "one"']`},
	{`["it's"]`, `["it's"]`},
	{"['a\\nb']", `['a\nb']`},
	{"x.names|dictsort", "[('alpha', 1), ('Mid', 2), ('zeta', 3)]"},
	{"x.names|dictsort(reverse=true)|map('first')|join(' ')", "zeta Mid alpha"},
	{"['b', 'C', 'a']|sort|join", "abC"},
	{"['b', 'B', 'a']|unique|join", "ba"},
	{"x.types in ['string', 'null']", "False"},
	{"x.types == ['string', 'null']", "True"},
	{"'null' in x.types", "True"},
	{"{'a': [1, {}]} == {'a': [1.0, {}]}", "True"},
	{"1 == true", "True"},
	{"x.text|length", "7"},
	{"x.text[2]", "ü"},
	{"x.text[-1]", "😀"},
	{"x.text[::-1]", "😀 eßürG"},
	{"x.text[1:4]", "rüß"},
	{"x.text|list|last", "😀"},
	{"'\u00a0 a \u3000'|trim", "a"},
	{"'xxaxx'.strip('x')", "a"},
	{"'a,b,c'.split(',', 1)", "['a', 'b,c']"},
	{"'a,b,c'.rsplit(',', 1)", "['a,b', 'c']"},
	{"'a  b\\n c'.split()", "['a', 'b', 'c']"},
	{"'aaa'.replace('a', 'b', 2)", "bba"},
	{"'ab'.replace('', '-')", "-a-b-"},
	{"'abc'.startswith(('x', 'a'))", "True"},
	{"'{} {} {a}'.format(1.0, 'y', a=none)", "1.0 y None"},
	{"'{1} {{{0}}}'.format(1.0, 'y')", "y {1.0}"},
	{"'a\u2028b\\n\\nc'|indent(2)", "a\n  b\n\n  c"},
	{"'a\\n'|indent(first=true)", "    a\n"},
	{"7 % 3", "1"},
	{"-7 % 3", "2"},
	{"7 / 2", "3.5"},
	{"0.1 + 0.2", "0.30000000000000004"},
	{"2 * 3.0", "6.0"},
	{"'ab' * 2", "abab"},
	{"range(2, 8, 3)|list", "[2, 5]"},
	{"'abc'|first ~ 'abc'|last ~ []|first", "ac"},
	{"[{'a': {'b': 1}}, {'a': {}}]|map(attribute='a.b', default=0)|list", "[1, 0]"},
	{"[{'a': 1}, {'a': 2}, {}]|selectattr('a', 'defined')|rejectattr('a', 'equalto', 2)|list", "[{'a': 1}]"},
	{"[0, 1, none, '']|select|list + [0, 1]|reject('odd')|list", "[1, 0]"},
	{"none|map('upper')|list ~ none|selectattr('x')|list", "[][]"},
	{"x.text|tojson(ensure_ascii=true) ~ '\u007f'|tojson(ensure_ascii=true)", `"Gr\u00fc\u00dfe \ud83d\ude00""\u007f"`},
	{"x.names|items|list|first", "('zeta', 3)"},
	{"(1, 2) in {(1, 2): 3}", "True"},
	{"[1, 2, 3][:-1]", "[1, 2]"},
	{"x.names.items()|list", "[('zeta', 3), ('Mid', 2), ('alpha', 1)]"},
	{"x.names is iterable", "True"},
	{"x.names is sequence", "True"},
	{"strftime_now('%Y-%m-%d %H:%M:%S %Z')", "2026-03-05 14:07:09 UTC"},
}

const jinjaArguments = `{"third": 0.3333333333333333, "tiny": 1e-07, "huge": 1.5e+22, "whole": 1500.0, "sixteen": 1e16,
	"small": 0.0001, "wide": 12345678901234567890, "minus": -0.0, "inf": 1e400, "none": null, "yes": true,
	"list": [1, "two", [3.5, {"k": "v"}], {}, null], "names": {"zeta": 3, "Mid": 2, "alpha": 1},
	"text": "Gr\u00fc\u00dfe \ud83d\ude00", "quotes": "it's \"one\"", "types": ["string", "null"]}`

// asObject is a template that reads the arguments of the last turn's call.
const asObject = "{% set x = messages[-1].tool_calls[0].function.arguments if messages[-1].tool_calls else {} %}" +
	"{% for m in messages %}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments.arg|default('') %}{% endfor %}{% endfor %}"

func TestJinjaIsPythons(t *testing.T) {
	for _, tt := range jinjaCases {
		c := newTestTemplate(t, asObject+"{% if x.third %}{{ "+tt.expression+" }}{% endif %}")
		got, err := c.Render(llama.ChatInput{Messages: called(jinjaArguments), Now: testNow})
		if err != nil {
			t.Errorf("%s: %v", tt.expression, err)
		} else if text := joinParts(got.Parts); text != tt.want {
			t.Errorf("%s prints %q, want %q", tt.expression, text, tt.want)
		}
	}
}

func TestJinjaStatements(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"continue keeps what was printed", "{% for i in [1,2] %}{% if true %}<{{ i }}{% continue %}{% endif %}>{% endfor %}", "<1<2"},
		{"break keeps what was printed", "{% for i in [1,2] %}{% if true %}<{{ i }}{% break %}{% endif %}>{% endfor %}", "<1"},
		{"a loop's turn does not see the last one's variables", "{% for i in [1,2] %}{% if i == 1 %}{% set x = i %}{% endif %}[{{ x }}]{% endfor %}", "[1][]"},
		{"a loop does not change outer variables", "{% set x = 0 %}{% for i in [1,2] %}{% set x = i %}{% endfor %}{{ x }}", "0"},
		{"a namespace is changed", "{% set n = namespace(items=0) %}{% for i in [1,2] %}{% set n.items = n.items + i %}{% endfor %}{{ n.items }}", "3"},
		{"a macro takes names in any order", "{% macro m(a, b=1, c=2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(c=5, a=0) }}", "015"},
		{"else of an empty loop", "{% for i in [] %}x{% else %}none{% endfor %}", "none"},
		{"a loop's neighbours", "{% for i in 'abc' %}{{ loop.previtem|default('^') }}{{ loop.index }}{{ loop.nextitem|default('$') }} {% endfor %}", "^1b a2c b3$ "},
		{"a filtered loop", "{% for k, v in {'a': 1, 'b': 2}.items() if v > 1 %}{{ k }}{{ loop.first }}{% endfor %}", "bTrue"},
		{"a call block", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in{% endcall %}", "<in>"},
		{"a filter block", "{% filter upper %}in{% endfilter %}", "IN"},
		{"a set block", "{% set x %}a{{ 1.0 }}{% endset %}{{ x }}", "a1.0"},
		{"append gives nothing", "{% set l = [] %}{{ l.append(1) or '' }}{{ l }}", "[1]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newTestTemplate(t, tt.source).Render(llama.ChatInput{Messages: user("Hi"), Now: testNow})
			if err != nil {
				t.Fatal(err)
			}
			if text := joinParts(got.Parts); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// hi is a short conversation, and withTool one with a tool.
var hi = llama.ChatInput{Messages: user("Hi")}

func withTool(parameters string) llama.ChatInput {
	return llama.ChatInput{Messages: user("Hi"), Tools: []llama.ChatTool{{Name: "f", Parameters: parameters}}}
}

// refusals are conversations that a template or we refuse, and why.
var refusals = []struct {
	name, source string
	in           llama.ChatInput
	want         string
}{
	{"its own words", "{% if messages[0].content == 'Hi' %}{{ raise_exception('only\none ' ~ 1.0) }}{% endif %}", hi, "chat template: only one 1.0"},
	{"a mistake", "{{ 1 }}\n{% if messages[0].content == 'Hi' %}{{ 1 + 'a' }}{% endif %}", hi, "chat template: line 2, column 42: cannot add Integer and String"},
	{"endless recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", hi, "chat template: macros call each other too deeply"},
	{"a huge range", "{% if messages[0].content == 'Hi' %}{% for i in range(10000000000) %}{% endfor %}{% endif %}", hi, "chat template: the template takes too long for this conversation"},
	{"loops without end", "{% if messages[0].content == 'Hi' %}{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}{% endif %}", hi, "chat template: the template takes too long for this conversation"},
	{"a text that doubles", "{% if messages[0].content == 'Hi' %}{% set n = namespace(t='abcdefgh') %}{% for i in range(99) %}{% set n.t = n.t ~ n.t %}{% endfor %}{% endif %}", hi, "chat template: the template takes too long for this conversation"},
	{"lists that double", "{% if messages[0].content == 'Hi' %}{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}{% endif %}", hi, "chat template: the template takes too long for this conversation"},
	{"a long text searched again and again", "{% if messages[0].content == 'Hi' %}{% set t = 'ab' * 99999 %}{% for i in range(9999) %}{% if 'c' in t %}{% endif %}{% endfor %}{% endif %}", hi, "chat template: the template takes too long for this conversation"},
	{"tuples in tuples", "{% set n = namespace(x=0) %}{% for i in range(99) %}{% set n.x = (n.x, 1) %}{% endfor %}", hi, "chat template: line 1, column 67: tuples are nested too deeply"},
	{"a list in itself", "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", hi, "chat template: line 1, column 45: a value is nested too deeply"},
	{"an unknown filter", "{{ 'a'|nope }}", hi, "chat template: line 1, column 7: No filter named 'nope' for String"},
	{"an unknown role", "{{ 1 }}", llama.ChatInput{Messages: []llama.ChatMessage{said("root", "Hi")}}, `chat template: messages.0.role is "root"`},
	{"parameters that are no JSON", "{{ 1 }}", withTool("nope"), "chat template: tools.0.function.parameters: not valid JSON"},
	{"parameters that are too deep", "{{ 1 }}", withTool(strings.Repeat("[", 200) + strings.Repeat("]", 200)), "chat template: tools.0.function.parameters: nested too deeply"},
}

// Arguments of a call that was cut come back as no JSON. A template has them as
// they are, or within an object where it knows of nothing else.
func TestArgumentsThatAreNoJSON(t *testing.T) {
	const print = "{% for m in messages %}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments %}"
	const done = "{% endfor %}{% endfor %}"
	for _, tt := range []struct{ name, source, arguments, want string }{
		{"as it is", print + "{% if a is string %}{{ a }}{% else %}{{ a|tojson }}{% endif %}" + done, `{"city": "Eug`, `{"city": "Eug`},
		{"quoted", print + "{{ a|tojson }}" + done, `{"city`, `"{\"city"`},
		{"an object", print + "{% for k, v in a|items %}{{ k }}={{ v }}{% endfor %}" + done, `{"city": "Eug`, `arguments={"city": "Eug`},
		{"an object of a list", print + "{% for k, v in a|items %}{{ k }}={{ v }}{% endfor %}" + done, `[1]`, `arguments=[1]`},
		{"whole", print + "{% for k, v in a|items %}{{ k }}={{ v }}{% endfor %}" + done, `{"city": "Eugene"}`, `city=Eugene`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newTestTemplate(t, tt.source).Render(llama.ChatInput{Messages: called(tt.arguments), Now: testNow})
			if err != nil {
				t.Fatal(err)
			}
			if text := joinParts(got.Parts); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// All templates that take a call take one that was cut.
func TestCutCallsInTemplates(t *testing.T) {
	history := func(arguments string) llama.ChatInput {
		call := llama.ChatCall{ID: "call12345", Name: "weather", Arguments: arguments}
		return llama.ChatInput{Now: testNow, Messages: []llama.ChatMessage{
			said("user", "The weather?"),
			{Role: "assistant", Calls: []llama.ChatCall{call}},
			{Role: "tool", ToolCallID: call.ID, Name: call.Name, Content: []llama.ChatPart{{Text: "cut"}}},
		}, Tools: []llama.ChatTool{{Name: "weather", Parameters: `{"type":"object","properties":{"city":{"type":"string"}}}`}}}
	}
	shown := 0
	for name, source := range testTemplates(t) {
		c, err := newTemplate(source, testBOS, testEOS)
		if err != nil {
			t.Fatal(err)
		}
		if r, _, err := c.render(history(`{"city": "Eugene"}`)); err != nil || !strings.Contains(string(r.prompt), "Eugene") {
			continue // it takes no calls
		}
		r, _, err := c.render(history(`{"city": "Eug`))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(string(r.prompt), "Eug") {
			t.Errorf("%s leaves the cut call out:\n%s", name, r.prompt)
		}
		shown++
	}
	if shown < 10 {
		t.Errorf("only %d templates were asked", shown)
	}
}

// Whoever ends a model's reasoning has to know the texts around it, so all templates whose
// answers have reasoning name them.
func TestThinkingIsNamed(t *testing.T) {
	thinking := 0
	for name, source := range testTemplates(t) {
		chat := newTestTemplate(t, source)
		e, err := chat.Envelope(llama.EnvelopeInput{Tools: envelopeTools, Thinking: true})
		if err != nil || !strings.Contains(string(e.Parser), `"tag":"reasoning"`) {
			continue
		}
		p, err := chat.Render(llama.ChatInput{Messages: []llama.ChatMessage{said("user", "Hi")}, Thinking: true, Now: testNow})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.ThinkStart == "" || len(p.ThinkEnd) == 0 {
			t.Errorf("%s: reasoning starts with %q and ends with %q", name, p.ThinkStart, p.ThinkEnd)
		}
		thinking++
	}
	if thinking < 40 {
		t.Errorf("only %d templates have reasoning", thinking)
	}
}

func TestTemplateRefusals(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newTestTemplate(t, tt.source).Render(tt.in)
			if !errors.Is(err, llama.ErrTemplate) {
				t.Fatalf("got %v, want an ErrTemplate", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

// deepSources nest values as often as the conversation says.
var deepSources = []string{
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = [n.x] %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = {'a': n.x} %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = namespace(y=n.x) %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = [n.x] + [] %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = [n.x]|reverse|list %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = {'a': n.x}|dictsort %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = {'a': n.x}.values() %}{% endfor %}ok",
	"{% set n = namespace(x=0) %}" + turns + "{% set n.x = [[n.x].append] %}{% endfor %}ok",
	"{% set top = [] %}{% set n = namespace(x=top) %}" + turns + "{% set l = [] %}{% set _ = n.x.append(l) %}{% set n.x = l %}{% endfor %}ok",
}

const turns = "{% for i in range(messages[0].content|int) %}"

// What templates nest without end is let go without overflowing the stack.
func TestDeepValues(t *testing.T) {
	room := strings.Repeat(" ", 20_000) // the longer a conversation, the more a template may do
	for _, source := range deepSources {
		got, err := newTestTemplate(t, source).Render(llama.ChatInput{Messages: user("100000" + room)})
		if err != nil {
			t.Errorf("%s: %v", source, err)
		} else if text := joinParts(got.Parts); text != "ok" {
			t.Errorf("%s: got %q", source, text)
		}
	}
}

// hostileSources are templates that are refused.
var hostileSources = []string{
	"{% if %}{{ messages[",
	"{{ 'unclosed }}",
	"{% for x in y %}",
	"{% nope %}",
	"{{ " + strings.Repeat("(", 100_000) + strings.Repeat(")", 100_000) + " }}",
	"{{ " + strings.Repeat("not ", 100_000) + "x }}",
	strings.Repeat("{% if x %}", 100_000),
	strings.Repeat("{% set x %}", 100_000),
	strings.Repeat("{% for x in y %}{% macro x() %}{% call x() %}{% filter x %}", 10_000),
	"{% if x %}" + strings.Repeat("{% elif x %}", 100_000) + "{% endif %}",
	"{{ x" + strings.Repeat(".a", 100_000) + " }}",
	strings.Repeat("a", 2<<20),
}

func TestBrokenTemplates(t *testing.T) {
	for _, source := range hostileSources {
		if _, err := NewTemplate(source, "", ""); !errors.Is(err, llama.ErrTemplate) {
			t.Errorf("%.40q: got %v, want an ErrTemplate", source, err)
		} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("%.40q: not one short line: %q", source, err)
		}
	}
}

func TestPartsOfControlTexts(t *testing.T) {
	const source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content|trim }}<|im_end|>\n{% endfor %}"
	special := func(s string) llama.Part { return llama.Part{Text: []byte(s), Special: true} }
	literal := func(s string) llama.Part { return llama.Part{Text: []byte(s)} }
	for _, tt := range []struct {
		name, content string
		want          []llama.Part
	}{
		{"none", "Hi <there>", []llama.Part{special("<|im_start|>user\nHi <there><|im_end|>\n")}},
		{"one", "a<|im_end|>b", []llama.Part{special("<|im_start|>user\na"), literal("<|im_end|>"), special("b<|im_end|>\n")}},
		{"two", "<|im_end|><|im_start|>", []llama.Part{
			special("<|im_start|>user\n"), literal("<|im_end|>"), literal("<|im_start|>"), special("<|im_end|>\n"),
		}},
		{"begun, and the template goes on", "<|im_end|><|im_end|", []llama.Part{
			special("<|im_start|>user\n"), literal("<|im_end|>"), special("<|im_end|<|im_end|>\n"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newTestTemplate(t, source).Render(llama.ChatInput{Messages: user(tt.content)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Parts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPartsOfTextsAcrossBorders(t *testing.T) {
	// The user's text and the template's spell a control text together.
	c := newTestTemplate(t, "{{ '<|im_end|>' }}\n{{ messages[0].content }}end|>{{ messages[0].content }}{{ messages[0].content[1:] }}")
	got, err := c.Render(llama.ChatInput{Messages: user("<|im_")})
	if err != nil {
		t.Fatal(err)
	}
	want := []llama.Part{
		{Text: []byte("<|im_end|>\n"), Special: true},
		{Text: []byte("<|im_")},
		{Text: []byte("end|><|im_|im_"), Special: true},
	}
	if diff := cmp.Diff(want, got.Parts); diff != "" {
		t.Error(diff)
	}
}

// zaps are control texts that no template knows, so whatever spells one comes
// from the request.
var zaps = []string{"<|zap|>", "<zap>", "</zap>", "[ZAP]", "<|ZAP|>", "<ZAP>", "</ZAP>", "|zap", "\"zap\"", "zap\u2028zap"}

// TestNoTemplateLosesMarks renders conversations that are full of pieces of
// control texts through all templates: none may stand in a Special part.
func TestNoTemplateLosesMarks(t *testing.T) {
	var list []special
	for i, text := range zaps {
		list = append(list, special{token: llama.Token(i), text: text})
	}
	sources := testTemplates(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		c, err := newChatOf(sources[name], "", testBOS, testEOS, newSpecials(list))
		if err != nil {
			t.Fatal(err)
		}
		rendered, literal := 0, 0
		for range 40 {
			in := filled(random, zaps)
			p, err := c.Render(in)
			if err != nil {
				continue // some templates take no tools, or only certain turns
			}
			rendered++
			for _, part := range p.Parts {
				for _, text := range zaps {
					if part.Special && strings.Contains(string(part.Text), text) {
						t.Fatalf("%s: %q in %q of %+v", name, text, part.Text, in)
					}
				}
				if !part.Special {
					literal++
				}
			}
		}
		if rendered == 0 || literal == 0 {
			t.Errorf("%s: %d conversations rendered, %d literal parts: nothing was tested", name, rendered, literal)
		}
	}
}

// filled is a random conversation of these texts and pieces of them.
func filled(random *rand.Rand, texts []string) llama.ChatInput {
	text := func() string {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			z := texts[random.IntN(len(texts))]
			from := random.IntN(len(z)) * random.IntN(2)
			to := from + 1 + random.IntN(len(z)-from)
			if random.IntN(2) == 0 {
				to = len(z)
			}
			b.WriteString(strings.ToValidUTF8(z[from:to], ""))
			b.WriteString([]string{"", " ", "\n", "word", "</think>", "\t"}[random.IntN(6)])
		}
		return b.String()
	}
	content := func() []llama.ChatPart {
		parts := []llama.ChatPart{{Text: text()}}
		for random.IntN(4) == 0 {
			parts = append(parts, llama.ChatPart{Text: text()})
		}
		return parts
	}
	quoted := func() string { return string(appendJSONString(nil, text())) }
	in := llama.ChatInput{Thinking: random.IntN(2) == 0, Now: testNow}
	if random.IntN(2) == 0 {
		in.Messages = append(in.Messages, llama.ChatMessage{Role: "system", Content: content()})
	}
	tools := random.IntN(2) == 0
	for range 1 + random.IntN(3) {
		in.Messages = append(in.Messages, llama.ChatMessage{Role: "user", Content: content()})
		if !tools {
			in.Messages = append(in.Messages, llama.ChatMessage{Role: "assistant", Content: content(), Reasoning: text()})
			continue
		}
		id := "call" + strconv.Itoa(10000+random.IntN(9999))
		call := llama.ChatCall{ID: id, Name: text(), Arguments: fmt.Sprintf("{%s: %s, %s: [%s, {%s: 1.5}]}", quoted(), quoted(), quoted(), quoted(), quoted())}
		in.Messages = append(in.Messages,
			llama.ChatMessage{Role: "assistant", Calls: []llama.ChatCall{call}, Reasoning: text()},
			llama.ChatMessage{Role: "tool", Content: content(), ToolCallID: id, Name: call.Name},
			llama.ChatMessage{Role: "assistant", Content: content()})
	}
	in.Messages = append(in.Messages, llama.ChatMessage{Role: "user", Content: content()})
	for range 2 {
		if tools {
			in.Tools = append(in.Tools, llama.ChatTool{Name: text(), Description: text(), Parameters: fmt.Sprintf(
				`{"type": "object", "properties": {%s: {"type": "string", "description": %s, "enum": [%s]}}, "required": [%s]}`,
				quoted(), quoted(), quoted(), quoted())})
		}
	}
	return in
}

func TestImagesBecomeParts(t *testing.T) {
	c := newTestTemplate(t, "{% for m in messages %}<u>{{ m.content }}</u>{% endfor %}")
	got, err := c.Render(llama.ChatInput{Messages: []llama.ChatMessage{{Role: "user", Content: []llama.ChatPart{
		{Text: "\uFDD0 look:"}, {Image: 1}, {Image: 2}, {Text: "and <u>"},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []llama.Part{
		{Text: []byte("<u>\uFDD0 look:"), Special: true}, {Image: 1}, {Image: 2},
		{Text: []byte("and "), Special: true}, {Text: []byte("<u>")}, {Text: []byte("</u>"), Special: true},
	}
	if diff := cmp.Diff(want, got.Parts); diff != "" {
		t.Error(diff)
	}
}

func TestDates(t *testing.T) {
	zone := time.FixedZone("XYZ", 5*3600+1800)
	c := newTestTemplate(t, "{{ date_string }}|{{ datetime }}|{{ strftime_now('%d %B %Y %H:%M %z %Z') }}")
	got, err := c.Render(llama.ChatInput{Messages: user("Hi"), Now: testNow.Add(10 * time.Hour).In(zone)})
	if err != nil {
		t.Fatal(err)
	}
	if text, want := joinParts(got.Parts), "06 Mar 2026|Mar 06 2026|06 March 2026 05:37 +0530 XYZ"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestRendersOfManyAtOnce(t *testing.T) {
	// The first renders of a template without a handler analyse it.
	c := newTestTemplate(t, chatML)
	in := llama.ChatInput{Messages: user("Hi <|im_end|>")}
	var wg sync.WaitGroup
	got := make([]llama.Prompt, 8)
	for i := range got {
		wg.Go(func() {
			for range 20 {
				p, err := c.Render(in)
				if err != nil {
					t.Error(err)
				}
				got[i] = p
			}
		})
	}
	wg.Wait()
	for _, p := range got[1:] {
		if diff := cmp.Diff(got[0], p); diff != "" {
			t.Fatal(diff)
		}
	}
}
