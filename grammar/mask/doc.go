// Package mask turns a grammar into token masks: for each place that a model's
// answer has reached, the set of tokens that may come next. The engine asks it
// for one mask per constrained row and step.
//
// A Vocabulary is made once per model, an Automaton once per grammar, and a
// Sequence once per answer. All sequences of one grammar share its Automaton
// and what it has worked out so far; sequences may run on any goroutines, each
// on one at a time.
//
// # How it works
//
// The automaton is a pushdown automaton over bytes. Each rule of the grammar
// becomes states with byte edges and call edges, when it is first called. An
// item is a state, a register (the count of a counted loop, or the keys that an
// object already has) and a frame: the list of items to go on with when the
// rule has ended. A configuration is a set of items: all places in the grammar
// where a text may stand. Configurations and frames are interned, so equal
// situations have equal numbers, and the whole state of a sequence is one
// number. Nothing is determinized before it is met.
//
// The mask of a configuration is put together from its items, grouped by frame.
// What tokens stay inside a rule does not depend on the frame: this is an inner
// mask, worked out once for each set of items without their frame and kept. A
// token that leaves the rule is kept by what is left of it there, in a trie of
// exits, which is walked from the frame's items. Three things make inner masks
// cheap to fill: inside free strings all tokens of plain characters are known
// to stay; places that differ from a free string in a few first bytes only are
// worked out as a difference; and inner masks of strings and numbers are kept in
// the Vocabulary, for all grammars.
//
// Masks are exact: a token is in the mask if and only if the text with it can be
// completed. There is one exception. A grammar.Unique is no matter of places in a
// grammar alone: what was read before counts. Its masks are worked out as if any
// item might come, and then the tokens that would repeat one, or lead where nothing
// else is left, are taken away. A token that ends an item and has more than a few
// bytes of the next one is not allowed there, for the price of finding out; its
// text is, in several tokens.
//
// # Memory and time
//
// All that is worked out stands in lists without pointers, up to a limit; beyond
// it the automaton forgets everything and starts a new epoch. A sequence that
// comes from an older one reads its tokens again. Masks and transitions that are
// known cost no allocation. What a grammar may cost in one call is bounded too.
package mask
