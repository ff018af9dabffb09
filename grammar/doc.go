// Package grammar turns JSON Schemas and GBNF texts into grammars: sets of
// texts that a model's answer must belong to.
//
// A schema goes through three forms:
//
//	schema ─▶ term ─▶ shape ─▶ Grammar ─▶ GBNF text
//
// A term is a schema, or a combination of schemas, taken as a set of JSON
// values. A shape is its normal form: for each JSON type, which values of that
// type belong to the set. Shapes can be intersected, united and complemented,
// which is all that allOf, anyOf, oneOf, not, if and the rest mean. A Grammar
// spells the values: compact JSON, properties in the schema's order, one
// spelling for each string. Strings and numbers are regular languages, held as
// deterministic automata (DFA).
//
// Where engines of regular expressions differ in what a class means, or a format
// is known in part, a string language has an inner and an outer form. Admitted
// is what is certain; what a schema excludes is what is possible.
//
// Compiling is sound: every text of a strict grammar is a valid instance of its
// schema. What cannot be promised is refused with an *Unenforceable that names
// the place in the schema; a caller that asks for best effort gets a grammar
// that admits more, and the list of what was given up. Compiling is bounded:
// Limits caps states, branches and work, never the clock, so that a schema is
// always answered alike.
//
// An answer is more than a value: a chat template says how it thinks, talks and
// calls tools. An Envelope is that form, read from the parser that common/chat
// makes for the template's own output (ParseEnvelope), with examples of calls to
// learn what the parser leaves open (Learn). Envelope.Grammar puts the grammars of
// tools or of a value in the places of arguments and content, as a Call asks for:
// free text that may lead to calls, calls from the first token on, or a value.
// Where a template writes arguments one by one in tags they come in any order, each
// at most once; where it writes JSON they are spaced as the template spaces them in
// its history; Gemma 4 has a notation of its own, with bare keys in order and strings
// between marks.
//
// The engine calls FromSchema in the request's goroutine, before queueing. A
// Grammar does not change after it was made and may be used by any number of
// goroutines. Package grammar/mask turns it into token masks.
package grammar
