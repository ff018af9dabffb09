package llama

// Kind is what a token is for (llama_token_attr).
type Kind uint8

// The kinds of tokens.
const (
	KindNormal  Kind = iota // a piece of text
	KindByte                // a single byte, used where no other token fits
	KindUser                // text that the vocabulary keeps whole, such as <think> (user-defined)
	KindControl             // marks of the template, such as <|im_end|>
	KindUnused              // padding and unknown tokens, never generated on purpose
)

// A VocabToken describes one token for NewVocab.
type VocabToken struct {
	Piece []byte // its text; for control tokens the text that the vocabulary names them by
	Kind  Kind
	End   bool // ends a generation (llama_vocab_is_eog)
}

// Vocab is a model's token table. It does not change after NewVocab.
type Vocab struct {
	text    []byte
	offsets []uint32 // text[offsets[t]:offsets[t+1]] is the piece of t
	kinds   []Kind
	ends    []Token
	isEnd   []bool
	bos     Token
}

// NoToken stands for a token that a vocabulary does not have (LLAMA_TOKEN_NULL).
const NoToken Token = -1

// NewVocab builds a table from the tokens in the order of their ids. bos is
// the token put in front of a prompt, or NoToken if the model wants none.
func NewVocab(tokens []VocabToken, bos Token) *Vocab {
	v := &Vocab{
		offsets: make([]uint32, 1, len(tokens)+1),
		kinds:   make([]Kind, len(tokens)),
		isEnd:   make([]bool, len(tokens)),
		bos:     bos,
	}
	for id, t := range tokens {
		v.text = append(v.text, t.Piece...)
		v.offsets = append(v.offsets, uint32(len(v.text)))
		v.kinds[id] = t.Kind
		if t.End {
			v.isEnd[id] = true
			v.ends = append(v.ends, Token(id))
		}
	}
	return v
}

// Len is the number of tokens (llama_vocab_n_tokens).
func (v *Vocab) Len() int { return len(v.kinds) }

// Piece is a token's text (llama_token_to_piece with special texts shown).
// The caller must not change it.
func (v *Vocab) Piece(t Token) []byte {
	return v.text[v.offsets[t]:v.offsets[t+1]:v.offsets[t+1]]
}

// Kind tells what a token is for (llama_vocab_get_attr).
func (v *Vocab) Kind(t Token) Kind { return v.kinds[t] }

// IsEnd tells whether a token ends a generation (llama_vocab_is_eog).
func (v *Vocab) IsEnd(t Token) bool { return v.isEnd[t] }

// Ends lists the tokens that end a generation, in the order of their ids.
func (v *Vocab) Ends() []Token { return v.ends }

// BOS is the token that Tokenize puts in front when asked to, or NoToken if
// this model wants none (llama_vocab_get_add_bos).
func (v *Vocab) BOS() Token { return v.bos }

// Valid tells whether t is a token of this vocabulary.
func (v *Vocab) Valid(t Token) bool { return t >= 0 && int(t) < len(v.kinds) }
