package grammar

// trim removes what can never finish and what is never reached. It reports
// whether the root can finish.
func (g *Grammar) trim() bool {
	finishes := g.finishing()
	if !finishes[0] {
		return false
	}
	for i := range g.Rules {
		if finishes[i] && hasDeadEnd(g.Rules[i].Body, finishes) {
			g.Rules[i].Body, _ = prune(g.Rules[i].Body, finishes)
		}
	}
	g.dropUnreached()
	return true
}

// finishing tells which rules have a text.
func (g *Grammar) finishing() []bool {
	finishes := make([]bool, len(g.Rules))
	for changed := true; changed; {
		changed = false
		for i := len(g.Rules) - 1; i >= 0; i-- {
			if !finishes[i] && canFinish(g.Rules[i].Body, finishes) {
				finishes[i], changed = true, true
			}
		}
	}
	return finishes
}

func canFinish(n Node, finishes []bool) bool {
	switch n := n.(type) {
	case Class:
		return len(n) > 0
	case *DFA:
		return !n.isEmpty()
	case Ref:
		return finishes[n]
	case Repeat:
		return n.Min == 0 || canFinish(n.Body, finishes)
	case Seq:
		for _, p := range n {
			if !canFinish(p, finishes) {
				return false
			}
		}
	case Alt:
		for _, p := range n {
			if canFinish(p, finishes) {
				return true
			}
		}
		return false
	case Unique:
		return canFinish(n.Body, finishes)
	case Item:
		return canFinish(n.Body, finishes)
	case Bag:
		able := 0
		for _, item := range n.Items {
			if canFinish(item.Body, finishes) {
				able++
			} else if item.Required {
				return false
			}
		}
		return able >= n.Min && (n.Max == Unbounded || n.Min <= n.Max)
	}
	return true
}

// hasDeadEnd tells whether some part of the node cannot finish.
func hasDeadEnd(n Node, finishes []bool) bool {
	found := false
	walk(n, func(n Node) {
		switch n := n.(type) {
		case Class, *DFA, Ref:
			found = found || !canFinish(n, finishes)
		case Alt:
			found = found || len(n) == 0
		case Bag:
			found = found || !canFinish(n, finishes)
		}
	})
	return found
}

// prune is the node without its parts that cannot finish, or false if it is one
// itself.
func prune(n Node, finishes []bool) (Node, bool) {
	if !canFinish(n, finishes) {
		return nil, false
	}
	switch n := n.(type) {
	case Seq:
		parts := make([]Node, len(n))
		for i, p := range n {
			parts[i], _ = prune(p, finishes)
		}
		return sequence(parts...), true
	case Alt:
		var parts []Node
		for _, p := range n {
			if p, ok := prune(p, finishes); ok {
				parts = append(parts, p)
			}
		}
		return alternatives(parts...), true
	case Repeat:
		body, ok := prune(n.Body, finishes)
		if seq, isSeq := body.(Seq); !ok || isSeq && len(seq) == 0 {
			return Seq{}, true
		}
		return Repeat{body, n.Min, n.Max}, true
	case Unique:
		body, _ := prune(n.Body, finishes)
		return Unique{body}, true
	case Item:
		body, _ := prune(n.Body, finishes)
		return Item{body}, true
	case Bag:
		var items []BagItem
		for _, item := range n.Items {
			if body, ok := prune(item.Body, finishes); ok {
				items = append(items, BagItem{body, item.Required})
			}
		}
		n.Items = items
		return n, true
	}
	return n, true
}

// dropUnreached removes rules that the root does not lead to.
func (g *Grammar) dropUnreached() {
	renumber := make([]Ref, len(g.Rules))
	for i := range renumber {
		renumber[i] = -1
	}
	renumber[0] = 0
	order := []Ref{0}
	for i := 0; i < len(order); i++ {
		walk(g.Rules[order[i]].Body, func(n Node) {
			if ref, ok := n.(Ref); ok && renumber[ref] < 0 {
				renumber[ref] = Ref(len(order))
				order = append(order, ref)
			}
		})
	}
	rules := make([]Rule, len(order))
	for i, ref := range order {
		rules[i] = Rule{g.Rules[ref].Name, mapRefs(g.Rules[ref].Body, renumber)}
	}
	g.Rules = rules
}

// walk calls visit for a node and all inside it.
func walk(n Node, visit func(Node)) {
	visit(n)
	switch n := n.(type) {
	case Seq:
		for _, p := range n {
			walk(p, visit)
		}
	case Alt:
		for _, p := range n {
			walk(p, visit)
		}
	case Repeat:
		walk(n.Body, visit)
	case Unique:
		walk(n.Body, visit)
	case Item:
		walk(n.Body, visit)
	case Bag:
		walk(n.Sep, visit)
		for _, item := range n.Items {
			walk(item.Body, visit)
		}
	}
}

func mapRefs(n Node, renumber []Ref) Node {
	switch n := n.(type) {
	case Ref:
		return renumber[n]
	case Seq:
		out := make(Seq, len(n))
		for i, p := range n {
			out[i] = mapRefs(p, renumber)
		}
		return out
	case Alt:
		out := make(Alt, len(n))
		for i, p := range n {
			out[i] = mapRefs(p, renumber)
		}
		return out
	case Repeat:
		n.Body = mapRefs(n.Body, renumber)
		return n
	case Unique:
		return Unique{mapRefs(n.Body, renumber)}
	case Item:
		return Item{mapRefs(n.Body, renumber)}
	case Bag:
		n.Sep = mapRefs(n.Sep, renumber)
		items := make([]BagItem, len(n.Items))
		for i, item := range n.Items {
			items[i] = BagItem{mapRefs(item.Body, renumber), item.Required}
		}
		n.Items = items
		return n
	}
	return n
}

// nullable tells which rules have the empty text.
func (g *Grammar) nullable() []bool {
	nullable := make([]bool, len(g.Rules))
	for changed := true; changed; {
		changed = false
		for i := len(g.Rules) - 1; i >= 0; i-- {
			if !nullable[i] && isNullable(g.Rules[i].Body, nullable) {
				nullable[i], changed = true, true
			}
		}
	}
	return nullable
}

func isNullable(n Node, rules []bool) bool {
	switch n := n.(type) {
	case Literal:
		return n == ""
	case *DFA:
		return n.States[0].Accept
	case Ref:
		return rules[n]
	case Repeat:
		return n.Min == 0 || isNullable(n.Body, rules)
	case Seq:
		for _, p := range n {
			if !isNullable(p, rules) {
				return false
			}
		}
		return true
	case Alt:
		for _, p := range n {
			if isNullable(p, rules) {
				return true
			}
		}
	case Unique:
		return isNullable(n.Body, rules)
	case Item:
		return isNullable(n.Body, rules)
	case Bag:
		for _, item := range n.Items {
			if item.Required && !isNullable(item.Body, rules) {
				return false
			}
		}
		return n.Min == 0
	}
	return false
}

// leftRecursive is a rule that can begin with itself, or -1.
func (g *Grammar) leftRecursive() Ref {
	nullable := g.nullable()
	const open, done = 1, 2
	state := make([]uint8, len(g.Rules))
	found := Ref(-1)
	var visit func(Ref)
	visit = func(r Ref) {
		state[r] = open
		firsts(g.Rules[r].Body, nullable, func(first Ref) {
			if state[first] == open {
				found = first
			} else if state[first] == 0 {
				visit(first)
			}
		})
		state[r] = done
	}
	for r := range g.Rules {
		if state[r] == 0 {
			visit(Ref(r))
		}
	}
	return found
}

// firsts calls yield for the rules that the node can begin with.
func firsts(n Node, nullable []bool, yield func(Ref)) {
	switch n := n.(type) {
	case Ref:
		yield(n)
	case Repeat:
		firsts(n.Body, nullable, yield)
	case Alt:
		for _, p := range n {
			firsts(p, nullable, yield)
		}
	case Seq:
		for _, p := range n {
			firsts(p, nullable, yield)
			if !isNullable(p, nullable) {
				return
			}
		}
	case Unique:
		firsts(n.Body, nullable, yield)
	case Item:
		firsts(n.Body, nullable, yield)
	case Bag:
		for _, item := range n.Items {
			firsts(item.Body, nullable, yield)
		}
	}
}
