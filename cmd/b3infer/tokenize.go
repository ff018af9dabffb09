package main

import (
	"bufio"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama"
)

func (p *program) tokenizeCommand() *cobra.Command {
	var o tokenizeOptions
	cmd := &cobra.Command{
		Use:   "tokenize --model FILE [TEXT]",
		Short: "Print the tokens of a text or of a chat request's prompt",
		Long: `tokenize prints the tokens of a text, which is given as an argument or on
stdin, as the server makes them of a user's text: none becomes a control token.
With --request it prints the tokens of the prompt that a chat request becomes.`,
		Example: `  b3infer tokenize --model m.gguf "Hello, world"
  b3infer tokenize --model m.gguf --request request.json --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return p.showTokens(o, args) },
	}
	flags := cmd.Flags()
	modelFlag(flags, &o.model)
	flags.StringVar(&o.request, "request", "", "a `file` with the body of a chat completion request; - is stdin")
	flags.StringVar(&o.chatTemplate, "chat-template", "", "with --request: a Jinja `file` to use in place of the model's own chat template")
	flags.BoolVar(&o.special, "special", false, "let control texts in the text become control tokens")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

type tokenizeOptions struct {
	model, request, chatTemplate string
	special, json                bool
}

func (p *program) showTokens(o tokenizeOptions, args []string) error {
	switch {
	case o.model == "":
		return errors.New("no model: give a GGUF file with --model FILE")
	case o.request != "" && len(args) > 0:
		return errors.New("give a text or --request, not both")
	}
	return p.withVocabulary(o.model, func(model llama.Model) error {
		parts, err := p.partsOf(o, args, model)
		if err != nil {
			return err
		}
		tokens, err := model.Tokenize(nil, parts, o.request != "")
		if err != nil {
			return err
		}
		return p.printTokens(tokens, model.Vocab(), o.json)
	})
}

// partsOf is what is to be tokenized: a request's prompt, or the text.
func (p *program) partsOf(o tokenizeOptions, args []string, model llama.Model) ([]llama.Part, error) {
	if o.request == "" {
		if len(args) == 1 {
			return []llama.Part{{Text: []byte(args[0]), Special: o.special}}, nil
		}
		text, err := p.readInput(nil)
		return []llama.Part{{Text: text, Special: o.special}}, err
	}
	request, err := p.readRequest([]string{o.request})
	if err != nil {
		return nil, err
	}
	source := ""
	if o.chatTemplate != "" {
		if source, err = readTemplate(o.chatTemplate); err != nil {
			return nil, err
		}
	}
	chat, err := model.NewChat(llama.ChatParams{Template: source})
	if err != nil {
		return nil, err
	}
	prompt, err := engine.Render(chat, request)
	if err != nil {
		return nil, told(err)
	}
	return prompt.Parts, nil
}

// A shownToken is a token in tokenize's JSON.
type shownToken struct {
	ID    llama.Token `json:"id"`
	Piece string      `json:"piece"`
	Bytes []byte      `json:"bytes,omitempty"` // the piece, where it is not text by itself
	Kind  string      `json:"kind,omitempty"`  // of a token that is not a piece of text
}

// kinds are the names of the kinds that are marked.
var kinds = map[llama.Kind]string{
	llama.KindByte:    "byte",
	llama.KindUser:    "user-defined",
	llama.KindControl: "control",
	llama.KindUnused:  "unused",
}

func (p *program) printTokens(tokens []llama.Token, vocab *llama.Vocab, asJSON bool) error {
	shown := make([]shownToken, len(tokens))
	for i, t := range tokens {
		piece := vocab.Piece(t)
		shown[i] = shownToken{ID: t, Piece: string(piece), Kind: kinds[vocab.Kind(t)]}
		if !utf8.Valid(piece) {
			shown[i].Bytes = piece
		}
	}
	if asJSON {
		return p.printJSON(shown)
	}
	out := bufio.NewWriter(p.out)
	for _, t := range shown {
		fmt.Fprintf(out, "%7d  %q", t.ID, t.Piece)
		if t.Kind != "" {
			fmt.Fprintf(out, "  %s", t.Kind)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}
