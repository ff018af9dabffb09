package grammar

// sequence is the parts one after the other, in the simplest form.
func sequence(parts ...Node) Node {
	var out Seq
	for _, p := range parts {
		switch p := p.(type) {
		case Seq:
			for _, q := range p {
				out = appendPart(out, q)
			}
		default:
			out = appendPart(out, p)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// appendPart joins literals that meet, and a part with repetitions of the same.
func appendPart(seq Seq, p Node) Seq {
	n := len(seq)
	switch p := p.(type) {
	case Literal:
		if p == "" {
			return seq
		}
		if n > 0 {
			if before, ok := seq[n-1].(Literal); ok {
				seq[n-1] = before + p
				return seq
			}
		}
	case Repeat:
		for ; n > 0 && sameText(seq[n-1], p.Body); n-- {
			p.Min++
			if p.Max != Unbounded {
				p.Max++
			}
		}
		return append(seq[:n], p)
	}
	return append(seq, p)
}

// alternatives is any of the parts, in the simplest form.
func alternatives(parts ...Node) Node {
	var out Alt
	empty := false
	for _, p := range parts {
		switch p := p.(type) {
		case Alt:
			out = append(out, p...)
		case Seq:
			if len(p) == 0 {
				empty = true
			} else {
				out = append(out, p)
			}
		default:
			out = append(out, p)
		}
	}
	var n Node = out
	if len(out) == 1 {
		n = out[0]
	}
	if !empty {
		return n
	}
	if len(out) == 0 {
		return Seq{}
	}
	return optional(n)
}

func optional(n Node) Node {
	if r, ok := n.(Repeat); ok && (r.Min == 0 || r.Min == 1) {
		r.Min = 0
		return r
	}
	return Repeat{n, 0, 1}
}

// repeated is a Repeat in the simplest form: of what is itself repeated, where one
// number of times says both.
func repeated(body Node, least, most int) Node {
	switch b := body.(type) {
	case Seq:
		if len(b) == 0 {
			return b
		}
	case Repeat:
		switch endless := most == Unbounded; {
		case most == 0:
		case b.Min == 0 && (endless || b.Max == Unbounded):
			return Repeat{b.Body, 0, Unbounded}
		case b.Min == 1 && (endless || least == 0 && b.Max == Unbounded):
			return Repeat{b.Body, least, Unbounded}
		}
	}
	if most == 0 {
		return Seq{}
	}
	if least == 1 && most == 1 {
		return body
	}
	return Repeat{body, least, most}
}
