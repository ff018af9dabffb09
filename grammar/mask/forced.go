package mask

// A Piece is a part of a text that a grammar leaves no choice about: bytes, or,
// where Text is nil, one token.
type Piece struct {
	Text  []byte
	Token int32
}

// maxForced bounds the bytes that Forced looks ahead.
const maxForced = 1 << 12

// Forced is what comes next in every text of the grammar, as far as there is one
// way on only. It may stop inside of a character. It is empty at a choice, which
// the end of the text is too. The sequence stays where it is.
func (s *Sequence) Forced() ([]Piece, error) {
	defer s.a.mu.Unlock()
	if err := s.enter(); err != nil {
		return nil, err
	}
	if s.last().config == over {
		return nil, nil
	}
	out := s.a.forced(s.last().config)
	return out, s.a.fault
}

// forced is what comes next behind a configuration.
func (a *Automaton) forced(config int32) []Piece {
	var out []Piece
	for read := 0; read < maxForced && a.fault == nil && !a.configs[config].ends; read++ {
		b, token, ok := a.onlyWay(config)
		if !ok {
			break
		}
		if token != noToken {
			out = append(out, Piece{Token: token})
			config = a.accept(config, token)
			continue
		}
		if n := len(out); n == 0 || out[n-1].Text == nil {
			out = append(out, Piece{})
		}
		last := &out[len(out)-1]
		last.Text = append(last.Text, b)
		config = a.next(config, b)
	}
	return out
}

// onlyWay is the byte or the token that a configuration goes on with, if there
// is just one.
func (a *Automaton) onlyWay(config int32) (b byte, token int32, ok bool) {
	token = noToken
	for _, it := range a.of(a.configs[config].items) {
		for _, e := range a.program.bytesOf(it.state) {
			if e.lo != e.hi || ok && (token != noToken || b != e.lo) {
				return 0, noToken, false
			}
			b, ok = e.lo, true
		}
		for _, e := range a.program.tokensOf(it.state) {
			if e.not || ok && token != e.token {
				return 0, noToken, false
			}
			token, ok = e.token, true
		}
	}
	return b, token, ok
}
