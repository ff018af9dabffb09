package handlers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/b3os/b3infer/engine"
)

// chatTool is a function that the model may call.
type chatTool struct {
	Type     *string       `json:"type"`
	Function *chatFunction `json:"function"`
}

type chatFunction struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
	Parameters  schema  `json:"parameters"`
	Strict      *bool   `json:"strict"`
}

func (t *chatTool) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type plain chatTool
	return decodeFunction(d, (*plain)(t))
}

// decodeFunction reads an object of type function. It looks at the type first:
// one of another type has other keys, and it is the type that is not supported.
func decodeFunction(d *jsontext.Decoder, into any) error {
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	var kind struct {
		Type any `json:"type"`
	}
	_ = json.Unmarshal(text, &kind) // what is wrong is found below
	if name, ok := kind.Type.(string); ok && name != "function" {
		return &fault{engine.CodeUnsupported, "type", "must be function on this node"}
	}
	if err := json.Unmarshal(text, into, strict); err != nil {
		return decodeFault(err)
	}
	return nil
}

// chatToolChoice is a mode, or a function's name.
type chatToolChoice struct {
	mode string
	name *string
}

func (c *chatToolChoice) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case 'n':
		return d.SkipValue()
	case '"':
		return json.UnmarshalDecode(d, &c.mode)
	case '{':
	default:
		return invalid("", "must be a string or an object")
	}
	var named struct {
		Type     *string `json:"type"`
		Function *struct {
			Name *string `json:"name"`
		} `json:"function"`
	}
	if err := decodeFunction(d, &named); err != nil {
		return err
	}
	switch {
	case named.Type == nil:
		return missing("type")
	case named.Function == nil:
		return missing("function")
	case named.Function.Name == nil:
		return missing("function.name")
	}
	c.name = named.Function.Name
	return nil
}

// toTools checks the tools and says them in the engine's words.
func toTools(wire []chatTool) ([]engine.Tool, *fault) {
	var tools []engine.Tool
	names := make(map[string]bool, len(wire))
	for i, t := range wire {
		f := t.check()
		if f == nil && names[*t.Function.Name] {
			f = invalid("function.name", "is the name of an earlier tool as well")
		}
		if f != nil {
			return nil, f.within("tools", i)
		}
		names[*t.Function.Name] = true
		tools = append(tools, engine.Tool{
			Name:        *t.Function.Name,
			Description: value(t.Function.Description),
			Parameters:  string(t.Function.Parameters),
			Strict:      isTrue(t.Function.Strict),
			Param:       fmt.Sprintf("tools.%d.function.parameters", i),
		})
	}
	return tools, nil
}

func (t *chatTool) check() *fault {
	switch {
	case t.Type == nil:
		return missing("type")
	case t.Function == nil:
		return missing("function")
	}
	return checkName("function.name", t.Function.Name)
}

// maxName is how long the name of a tool or of a format may be.
const maxName = 64

// checkName checks a required name.
func checkName(path string, name *string) *fault {
	switch {
	case name == nil:
		return missing(path)
	case *name == "" || len(*name) > maxName || strings.ContainsFunc(*name, notInNames):
		return invalid(path, "must have 1 to %d letters of a-z and A-Z, digits, _ and -", maxName)
	}
	return nil
}

// notInNames tells whether a character must not stand in a name.
func notInNames(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
}

// toChoice says a tool choice in the engine's words. Without tools there is no
// choice but none.
func (c *chatToolChoice) toChoice(tools []engine.Tool) (engine.ToolChoice, *fault) {
	if c == nil {
		return engine.ToolChoice{}, nil
	}
	if c.name != nil {
		if !slices.ContainsFunc(tools, func(t engine.Tool) bool { return t.Name == *c.name }) {
			return engine.ToolChoice{}, invalid("tool_choice.function.name", "is none of the names of tools")
		}
		return engine.ToolChoice{Mode: engine.ToolNamed, Name: *c.name}, nil
	}
	switch c.mode {
	case "auto":
		return engine.ToolChoice{}, nil
	case "none":
		return engine.ToolChoice{Mode: engine.ToolNone}, nil
	case "required":
		if len(tools) == 0 {
			return engine.ToolChoice{}, invalid("tool_choice", "is required, and there are no tools")
		}
		return engine.ToolChoice{Mode: engine.ToolRequired}, nil
	}
	return engine.ToolChoice{}, invalid("tool_choice", "must be none, auto, required or a function")
}
