package grammar

import (
	"errors"
	"testing"
)

// Of schemas that no value satisfies, the one is blamed that a user has to mend.
func TestContradictionsAreBlamed(t *testing.T) {
	const never = `{"type":"integer","minimum":5,"maximum":3}`
	object := func(name, schema string) string {
		return `{"type":"object","properties":{"` + name + `":` + schema + `},"required":["` + name + `"]}`
	}
	for _, tt := range []struct{ name, schema, want string }{
		{"itself", never, ""},
		{"member", object("a", never), "/properties/a"},
		{"member of a member", object("a", object("b/c", never)), "/properties/a/properties/b~1c"},
		{"optional beside required", `{"type":"object","properties":{"a":false,"b":` + never + `},"required":["b"]}`, "/properties/b"},
		{"false", object("a", "false"), ""},
		{"items", `{"type":"array","items":` + object("a", never) + `,"minItems":1}`, "/items/properties/a"},
		{"an item of several", `{"type":"array","prefixItems":[true,` + never + `],"minItems":2}`, "/prefixItems/1"},
		{"contains", `{"type":"array","contains":` + never + `}`, "/contains"},
		{"counts", object("a", `{"type":"array","minItems":3,"maxItems":2}`), "/properties/a"},
		{"reference", `{"$ref":"#/$defs/x","$defs":{"x":` + object("a", never) + `}}`, "/$defs/x/properties/a"},
		{"all of", object("a", `{"allOf":[{"type":"string"},{"type":"integer"}]}`), "/properties/a"},
		{"any of", object("a", `{"anyOf":[`+never+`,`+object("b", never)+`]}`), "/properties/a/anyOf/1/properties/b"},
		{"two ways", `{"anyOf":[` + object("a", never) + `,` + object("b", never) + `]}`, ""},
		{"endless", object("a", object("b", `{"$ref":"#"}`)), "/properties/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				_, err := FromSchema([]byte(tt.schema), Options{Strict: strict})
				var u *Unenforceable
				if !errors.As(err, &u) || u.Reason != "no value satisfies the schema" {
					t.Fatalf("strict %v: error %v", strict, err)
				}
				if u.Pointer() != tt.want {
					t.Errorf("strict %v: %q is blamed, want %q", strict, u.Pointer(), tt.want)
				}
			}
		})
	}
}
