package handlers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/b3os/b3infer/engine"
)

// function is a tool with more keys in its function, as they stand in JSON.
func function(name, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"type":"function","function":{"name":"` + name + `"` + more + `}}`
}

// nested is a schema of as many levels.
func nested(levels int) string {
	return strings.Repeat(`{"x":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

// sized is a schema of as many bytes.
func sized(n int) string {
	const frame = `{"x":""}`
	return `{"x":"` + strings.Repeat("é", (n-len(frame))/2) + strings.Repeat("x", (n-len(frame))%2) + `"}`
}

func TestContractTools(t *testing.T) {
	const inv, uns = "invalid_request", "unsupported_parameter"
	tool := func(name, tool, code, param, text string) refusal {
		return bad(name, `"tools":[`+function("f", "")+`,`+tool+`]`, code, param, param+" "+text)
	}
	choice := func(name, choice, code, param, text string) refusal {
		return bad(name, `"tools":[`+function("f", "")+`],"tool_choice":`+choice, code, param, param+" "+text)
	}
	const badName = "must have 1 to 64 letters of a-z and A-Z, digits, _ and -"
	runRefusals(t, serve(t, says("Hi")), []refusal{
		bad("tools_type", `"tools":"x"`, inv, "tools", "tools must be an array"),
		tool("tool_type", `"x"`, inv, "tools.1", "must be an object"),
		tool("tool_null", `null`, inv, "tools.1.type", "is required"),
		tool("type_missing", `{"function":{"name":"g"}}`, inv, "tools.1.type", "is required"),
		tool("type_number", `{"type":5}`, inv, "tools.1.type", "must be a string"),
		tool("C122_other_type", `{"type":"web_search","search_context_size":"low"}`, uns, "tools.1.type", "must be function on this node"),
		tool("C122_custom", `{"custom":{"name":"g"},"type":"custom"}`, uns, "tools.1.type", "must be function on this node"),
		tool("type_of_nothing", `{"type":""}`, uns, "tools.1.type", "must be function on this node"),
		tool("C122_function_missing", `{"type":"function"}`, inv, "tools.1.function", "is required"),
		tool("function_type", `{"type":"function","function":"g"}`, inv, "tools.1.function", "must be an object"),
		tool("responses_form", `{"type":"function","name":"g"}`, uns, "tools.1.name", "is not supported on this node"),
		tool("unknown_key", function("g", `"foo":null`), uns, "tools.1.function.foo", "is not supported on this node"),
		tool("duplicate_key", function("g", `"name":"h"`), inv, "tools.1.function.name", "is given twice"),
		tool("duplicate_key_in_schema", function("g", `"parameters":{"a":1,"a":2}`), inv, "tools.1.function.parameters.a", "is given twice"),
		tool("C122_name_missing", `{"type":"function","function":{}}`, inv, "tools.1.function.name", "is required"),
		tool("name_null", `{"type":"function","function":{"name":null}}`, inv, "tools.1.function.name", "is required"),
		tool("name_type", `{"type":"function","function":{"name":5}}`, inv, "tools.1.function.name", "must be a string"),
		tool("name_empty", function("", ""), inv, "tools.1.function.name", badName),
		tool("name_65", function(strings.Repeat("x", 65), ""), inv, "tools.1.function.name", badName),
		tool("name_space", function("a b", ""), inv, "tools.1.function.name", badName),
		tool("name_dot", function("a.b", ""), inv, "tools.1.function.name", badName),
		tool("name_letter", function("é", ""), inv, "tools.1.function.name", badName),
		tool("name_newline", function(`a\n`, ""), inv, "tools.1.function.name", badName),
		tool("name_twice", function("f", ""), inv, "tools.1.function.name", "is the name of an earlier tool as well"),
		tool("description_type", function("g", `"description":5`), inv, "tools.1.function.description", "must be a string"),
		tool("strict_type", function("g", `"strict":"yes"`), inv, "tools.1.function.strict", "must be true or false"),
		tool("C104_true", function("g", `"parameters":true`), inv, "tools.1.function.parameters", "must be a JSON Schema, which is an object here"),
		tool("C104_array", function("g", `"parameters":[]`), inv, "tools.1.function.parameters", "must be a JSON Schema, which is an object here"),
		tool("C104_text", function("g", `"parameters":"{}"`), inv, "tools.1.function.parameters", "must be a JSON Schema, which is an object here"),
		tool("C099_C101_size", function("g", `"parameters":`+sized(65537)), uns, "tools.1.function.parameters",
			"has 65537 bytes in compact form; at most 65536 are supported"),
		tool("C100_C101_depth", function("g", `"parameters":`+nested(33)), uns, "tools.1.function.parameters",
			"is nested 33 levels deep; at most 32 are supported"),
		choice("choice_word", `"any"`, inv, "tool_choice", "must be none, auto, required or a function"),
		choice("choice_empty", `""`, inv, "tool_choice", "must be none, auto, required or a function"),
		choice("choice_type", `true`, inv, "tool_choice", "must be a string or an object"),
		choice("C123_flat", `{"type":"function","name":"f"}`, uns, "tool_choice.name", "is not supported on this node"),
		choice("C123_without_type", `{"function":{"name":"f"}}`, inv, "tool_choice.type", "is required"),
		choice("C123_other_type", `{"type":"custom","function":{"name":"f"}}`, uns, "tool_choice.type",
			"must be function on this node"),
		choice("allowed_tools", `{"type":"allowed_tools","allowed_tools":{}}`, uns, "tool_choice.type", "must be function on this node"),
		choice("choice_type_number", `{"type":5}`, inv, "tool_choice.type", "must be a string"),
		choice("C123_without_function", `{"type":"function"}`, inv, "tool_choice.function", "is required"),
		choice("C123_without_name", `{"type":"function","function":{}}`, inv, "tool_choice.function.name", "is required"),
		choice("unknown_key_in_choice", `{"type":"function","function":{"name":"f","x":1}}`, uns, "tool_choice.function.x",
			"is not supported on this node"),
		choice("C123_unknown_name", `{"type":"function","function":{"name":"g"}}`, inv, "tool_choice.function.name",
			"is none of the names of tools"),
		bad("named_without_tools", `"tool_choice":{"type":"function","function":{"name":"f"}}`, inv, "tool_choice.function.name",
			"tool_choice.function.name is none of the names of tools"),
		bad("required_without_tools", `"tools":[],"tool_choice":"required"`, inv, "tool_choice",
			"tool_choice is required, and there are no tools"),
		bad("C124_type", `"parallel_tool_calls":"no"`, inv, "parallel_tool_calls", "parallel_tool_calls must be true or false"),
	})
}

func TestContractFormats(t *testing.T) {
	const inv, uns = "invalid_request", "unsupported_parameter"
	format := func(name, format, code, param, text string) refusal {
		return bad(name, `"response_format":`+format, code, param, param+" "+text)
	}
	schema := func(name, more, code, param, text string) refusal {
		return format(name, `{"type":"json_schema","json_schema":{`+more+`}}`, code, "response_format.json_schema."+param, text)
	}
	const badName = "must have 1 to 64 letters of a-z and A-Z, digits, _ and -"
	runRefusals(t, serve(t, says("Hi")), []refusal{
		format("C125_type", `{"type":"xml"}`, inv, "response_format.type", "must be text, json_object or json_schema"),
		format("C125_without_type", `{}`, inv, "response_format.type", "is required"),
		format("string", `"text"`, inv, "response_format", "must be an object"),
		format("unknown_key", `{"type":"text","foo":1}`, uns, "response_format.foo", "is not supported on this node"),
		format("responses_form", `{"type":"json_schema","name":"x"}`, uns, "response_format.name", "is not supported on this node"),
		format("text_with_schema", `{"type":"text","json_schema":{"name":"x"}}`, inv, "response_format.json_schema",
			"does not belong to a format of type text"),
		format("object_with_schema", `{"type":"json_object","json_schema":{"name":"x"}}`, inv, "response_format.json_schema",
			"does not belong to a format of type json_object"),
		format("C126_without_schema", `{"type":"json_schema"}`, inv, "response_format.json_schema", "is required"),
		format("C126_schema_null", `{"type":"json_schema","json_schema":null}`, inv, "response_format.json_schema", "is required"),
		schema("C126_name_missing", `"schema":{}`, inv, "name", "is required"),
		schema("C126_name_null", `"name":null`, inv, "name", "is required"),
		schema("name_pattern", `"name":"a b"`, inv, "name", badName),
		schema("name_65", `"name":"`+strings.Repeat("x", 65)+`"`, inv, "name", badName),
		schema("unknown_key_in_schema", `"name":"x","foo":1`, uns, "foo", "is not supported on this node"),
		schema("strict_type", `"name":"x","strict":1`, inv, "strict", "must be true or false"),
		schema("C104_true", `"name":"x","schema":true`, inv, "schema", "must be a JSON Schema, which is an object here"),
		schema("C099_C101_size", `"name":"x","schema":`+sized(65537), uns, "schema",
			"has 65537 bytes in compact form; at most 65536 are supported"),
		schema("C100_C101_depth", `"name":"x","schema":`+strings.ReplaceAll(nested(33), `{}`, `[]`), uns, "schema",
			"is nested 33 levels deep; at most 32 are supported"),
	})
}

// What passes, and what it means to the engine.
func TestContractToTools(t *testing.T) {
	request := func(change func(*engine.Request)) *engine.Request {
		r := &engine.Request{Messages: []engine.Message{{Role: engine.RoleUser, Content: []string{"Hi"}}}}
		change(r)
		return r
	}
	tools := func(tools ...engine.Tool) *engine.Request {
		for i := range tools {
			tools[i].Param = fmt.Sprintf("tools.%d.function.parameters", i)
		}
		return request(func(r *engine.Request) { r.Tools = tools })
	}
	chosen := func(c engine.ToolChoice) *engine.Request {
		r := tools(engine.Tool{Name: "f"}, engine.Tool{Name: "g"})
		r.Choice = c
		return r
	}
	format := func(schema string, strict bool) *engine.Request {
		return request(func(r *engine.Request) {
			r.Format = engine.Format{Schema: schema, Strict: strict, Param: "response_format.json_schema.schema"}
		})
	}
	two := `"tools":[` + function("f", "") + "," + function("g", "") + "]"
	const written = `{ "type":"object", "z":1.0, "a":[1e2,"\u00e9\/" ] }`
	long := strings.Repeat("-_09AZaz", 8)
	for _, c := range []struct {
		name, more string
		want       *engine.Request
	}{
		{"C122_least", `"tools":[` + function("f", "") + `]`, tools(engine.Tool{Name: "f"})},
		{"C105_nulls", `"tools":[` + function("f", `"description":null,"parameters":null,"strict":null`) + `]`, tools(engine.Tool{Name: "f"})},
		{"C122_all", `"tools":[` + function("f", `"description":"Does.","parameters":`+written+`,"strict":true`) + `,` +
			function(long, `"strict":false,"parameters":{}`) + `]`,
			tools(engine.Tool{Name: "f", Description: "Does.", Parameters: written, Strict: true}, engine.Tool{Name: long, Parameters: "{}"})},
		{"C099_C100_limits", `"tools":[` + function("f", `"parameters":`+sized(65536)) + `,` + function("g", `"parameters":`+nested(32)) + `]`,
			tools(engine.Tool{Name: "f", Parameters: sized(65536)}, engine.Tool{Name: "g", Parameters: nested(32)})},
		{"C099_counted_compact", `"tools":[` + function("f", `"parameters":{"\u0061":[`+strings.Repeat(" ", 70000)+`]}`) + `]`,
			tools(engine.Tool{Name: "f", Parameters: `{"\u0061":[` + strings.Repeat(" ", 70000) + `]}`})},
		{"C100_brackets_in_strings", `"tools":[` + function("f", `"parameters":{"x":"`+strings.Repeat(`{[\"\\`, 40)+`"}`) + `]`,
			tools(engine.Tool{Name: "f", Parameters: `{"x":"` + strings.Repeat(`{[\"\\`, 40) + `"}`})},
		{"escaped_type", `"tools":[{"type":"funct\u0069on","function":{"name":"f"}}]`, tools(engine.Tool{Name: "f"})},
		{"C123_auto", two + `,"tool_choice":"auto"`, chosen(engine.ToolChoice{})},
		{"C123_null", two + `,"tool_choice":null`, chosen(engine.ToolChoice{})},
		{"C123_none", two + `,"tool_choice":"none"`, chosen(engine.ToolChoice{Mode: engine.ToolNone})},
		{"C123_required", two + `,"tool_choice":"required"`, chosen(engine.ToolChoice{Mode: engine.ToolRequired})},
		{"C123_named", two + `,"tool_choice":{"type":"function","function":{"name":"g"}}`,
			chosen(engine.ToolChoice{Mode: engine.ToolNamed, Name: "g"})},
		{"choice_without_tools", `"tool_choice":"auto"`, request(func(*engine.Request) {})},
		{"none_without_tools", `"tools":null,"tool_choice":"none"`, request(func(r *engine.Request) { r.Choice.Mode = engine.ToolNone })},
		{"C124_one_call", `"parallel_tool_calls":false`, request(func(r *engine.Request) { r.OneCall = true })},
		{"C124_many_calls", `"parallel_tool_calls":true`, request(func(*engine.Request) {})},
		{"C125_text", `"response_format":{"type":"text","json_schema":null}`, request(func(*engine.Request) {})},
		{"C125_object", `"response_format":{"type":"json_object"}`,
			request(func(r *engine.Request) { r.Format = engine.Format{Schema: engine.AnyObject, Param: "response_format"} })},
		{"C125_schema", `"response_format":{"type":"json_schema","json_schema":{"name":"x","description":"d","strict":true,"schema":` + written + `}}`,
			format(written, true)},
		{"C126_best_effort", `"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":false,"schema":{}}}`, format("{}", false)},
		{"C126_no_schema", `"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`, format(engine.AnyObject, false)},
		{"C126_nulls", `"response_format":{"type":"json_schema","json_schema":{"name":"x","description":null,"schema":null,"strict":null}}`,
			format(engine.AnyObject, false)},
		{"C099_C100_format_limits", `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + nested(32) + `}}`,
			format(nested(32), false)},
	} {
		t.Run(c.name, func(t *testing.T) { checkRequest(t, chatBody(c.more), c.want) })
	}
}

// The limits of schemas come after the other parameters, and before what needs
// the model.
func TestContractSchemasInOrder(t *testing.T) {
	e := &script{refuse: &engine.Error{Code: engine.CodeContext, Message: "too long", Param: "messages"}}
	large := `"tools":[` + function("f", `"parameters":`+sized(65537)) + `]`
	runRefusals(t, serve(t, e), []refusal{
		bad("after_parameters", large+`,"temperature":3`, "invalid_request", "temperature", "temperature must be between 0 and 2"),
		bad("after_the_format", large+`,"response_format":{"type":"x"}`, "invalid_request", "response_format.type",
			"response_format.type must be text, json_object or json_schema"),
		bad("before_the_context", large, "unsupported_parameter", "tools.0.function.parameters",
			"tools.0.function.parameters has 65537 bytes in compact form; at most 65536 are supported"),
	})
}
