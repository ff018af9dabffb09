package grammar

// Nullable tells of each rule whether it has the empty text.
func (g *Grammar) Nullable() []bool { return g.nullable() }

// IsNullable tells whether a node has the empty text; rules is what Nullable
// gave.
func IsNullable(n Node, rules []bool) bool { return isNullable(n, rules) }
