package handlers

import "github.com/b3os/b3infer/engine"

// chatFormat is what the text of the answer has to be.
type chatFormat struct {
	Type       *string         `json:"type"`
	JSONSchema *chatJSONSchema `json:"json_schema"`
}

type chatJSONSchema struct {
	Name        *string `json:"name"`
	Description *string `json:"description"` // taken and ignored
	Schema      schema  `json:"schema"`
	Strict      *bool   `json:"strict"`
}

// toFormat checks a response format and says it in the engine's words.
func (f *chatFormat) toFormat() (engine.Format, *fault) {
	switch {
	case f == nil:
		return engine.Format{}, nil
	case f.Type == nil:
		return engine.Format{}, missing("response_format.type")
	}
	switch *f.Type {
	case "json_schema":
		return f.JSONSchema.toFormat()
	case "text", "json_object":
		if f.JSONSchema != nil {
			return engine.Format{}, invalid("response_format.json_schema", "does not belong to a format of type %s", *f.Type)
		}
		if *f.Type == "text" {
			return engine.Format{}, nil
		}
		return engine.Format{Schema: engine.AnyObject, Param: "response_format"}, nil
	}
	return engine.Format{}, invalid("response_format.type", "must be text, json_object or json_schema")
}

func (s *chatJSONSchema) toFormat() (engine.Format, *fault) {
	if s == nil {
		return engine.Format{}, missing("response_format.json_schema")
	}
	if f := checkName("response_format.json_schema.name", s.Name); f != nil {
		return engine.Format{}, f
	}
	format := engine.Format{
		Schema: string(s.Schema),
		Strict: isTrue(s.Strict),
		Param:  "response_format.json_schema.schema",
	}
	if format.Schema == "" {
		format.Schema = engine.AnyObject
	}
	return format, nil
}
