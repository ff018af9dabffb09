package grammar

// A Grammar is a context-free grammar over text. Rules[0] is the root. Every
// rule can finish, and none is left-recursive.
type Grammar struct {
	Rules   []Rule
	relaxed []Unenforceable
}

// A Rule names a set of texts.
type Rule struct {
	Name string // letters, digits and hyphens; unique
	Body Node
}

// Relaxed lists what a best-effort grammar does not enforce, in the order it
// was met.
func (g *Grammar) Relaxed() []Unenforceable { return g.relaxed }

// A Node is a set of texts: one of the types below, or *DFA.
type Node interface{ node() }

// Literal is one text, in valid UTF-8. The empty Literal is the empty text.
type Literal string

// Class is one code point out of sorted, disjoint, non-adjacent ranges without
// surrogates.
type Class []Range

// A Range is the code points from Lo to Hi, both included.
type Range struct{ Lo, Hi rune }

// Seq is its parts one after the other. The empty Seq is the empty text.
type Seq []Node

// Alt is any one of its parts.
type Alt []Node

// Repeat is Body at least Min and at most Max times, or any number of times
// from Min on when Max is Unbounded.
type Repeat struct {
	Body     Node
	Min, Max int
}

// Unbounded is the Max of a Repeat or Bag without an upper bound.
const Unbounded = -1

// Ref is the rule of that index in Grammar.Rules.
type Ref int

// Bag is some of Items in any order, each at most once, with Sep between two:
// at least Min and at most Max of them, and all that are Required. It has at
// most MaxBag items.
type Bag struct {
	Items    []BagItem
	Sep      Node
	Min, Max int
}

// A BagItem is a member of a Bag.
type BagItem struct {
	Body     Node
	Required bool
}

// MaxBag is the most items that a Bag can have: a set of them fits a word.
const MaxBag = 64

// Unique is the texts of Body in which no two Items are the same text. An Item
// belongs to the nearest Unique around it, also where rules stand between. In a
// grammar of FromSchema an Item has one text for each of its values, and there
// are always more of them than can be used up.
type Unique struct{ Body Node }

// Item is Body, as one of the items of a Unique.
type Item struct{ Body Node }

// Token is one token of the vocabulary that is not spelled out as text. Text is
// the token's text, or <[N]> for the token with id N. Not means any token but
// this one.
type Token struct {
	Text string
	Not  bool
}

func (Literal) node() {}
func (Class) node()   {}
func (Seq) node()     {}
func (Alt) node()     {}
func (Repeat) node()  {}
func (Ref) node()     {}
func (Bag) node()     {}
func (Unique) node()  {}
func (Item) node()    {}
func (Token) node()   {}
func (*DFA) node()    {}

// A DFA is a regular set of texts as a deterministic automaton over code
// points. States[0] is the start. Every other state can be reached from it, and
// from every state an accepting one; the DFA of the empty set alone has a start
// that cannot accept.
//
// Equal pointers mean equal sets. AnyString, AnyChar, AnyNumber and AnyInteger
// are the same pointers in every grammar, so that what is derived from them can
// be shared.
type DFA struct {
	States []State
}

// A State is a state of a DFA.
type State struct {
	Accept bool
	Edges  []Edge // sorted and disjoint; a code point on no edge is refused
}

// An Edge leads to state To on the code points from Lo to Hi.
type Edge struct {
	Lo, Hi rune
	To     int32
}
