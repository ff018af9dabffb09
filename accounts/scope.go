package accounts

import (
	"slices"
	"strings"
)

// A Scope is something that a key may do.
type Scope string

// The scopes.
const (
	ScopeRun    Scope = "infer:run"   // generate, and count tokens
	ScopeRead   Scope = "infer:read"  // list models, read the records of requests
	ScopeManage Scope = "keys:manage" // create, list and revoke keys of the same project
)

// AllScopes lists every scope there is.
func AllScopes() Scopes { return Scopes{ScopeRun, ScopeRead, ScopeManage} }

// Scopes are what a key may do.
type Scopes []Scope

// Has tells whether scope is among s.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// Covers tells whether all of other are among s. A key may hand on no more
// than it has.
func (s Scopes) Covers(other Scopes) bool {
	return !slices.ContainsFunc(other, func(scope Scope) bool { return !s.Has(scope) })
}

// String lists the scopes with spaces between them, as they are stored.
func (s Scopes) String() string {
	words := make([]string, len(s))
	for i, scope := range s {
		words[i] = string(scope)
	}
	return strings.Join(words, " ")
}

func scopesFrom(text string) Scopes {
	var s Scopes
	for word := range strings.FieldsSeq(text) {
		s = append(s, Scope(word))
	}
	return s
}

// normal is s in the order of AllScopes without doubles, or an error that
// names the one that is not known.
func (s Scopes) normal() (Scopes, error) {
	for _, scope := range s {
		if !AllScopes().Has(scope) {
			return nil, &InvalidError{"scopes", "scope " + quote(string(scope)) + " is not known; there are " + strings.ReplaceAll(AllScopes().String(), " ", ", ")}
		}
	}
	return slices.DeleteFunc(AllScopes(), func(scope Scope) bool { return !s.Has(scope) }), nil
}
