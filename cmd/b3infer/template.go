package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/handlers"
	"github.com/b3os/b3infer/llama"
)

func (p *program) templateCommand() *cobra.Command {
	var o templateOptions
	cmd := &cobra.Command{
		Use:   "template [REQUEST]",
		Short: "Print the prompt that a chat request becomes",
		Long: `template reads the body of an OpenAI chat completion request from a file, or
from stdin, and prints the prompt that the model's chat template makes of it,
byte for byte. With --chat-template it needs no model.

--parts prints the prompt's parts as JSON: special ones were written by the
template and may become control tokens; what a user or a tool wrote may not.`,
		Example: `  b3infer template --model m.gguf request.json
  b3infer template --chat-template chat.jinja --parts < request.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return p.showPrompt(o, args) },
	}
	modelFlag(cmd.Flags(), &o.model)
	cmd.Flags().StringVar(&o.chatTemplate, "chat-template", "", "a Jinja `file` to use in place of the model's own chat template")
	cmd.Flags().BoolVar(&o.parts, "parts", false, "print the parts of the prompt as JSON")
	return cmd
}

type templateOptions struct {
	model, chatTemplate string
	parts               bool
}

func (p *program) showPrompt(o templateOptions, args []string) error {
	request, err := p.readRequest(args)
	if err != nil {
		return err
	}
	source := ""
	if o.chatTemplate != "" {
		if source, err = readTemplate(o.chatTemplate); err != nil {
			return err
		}
	}
	show := func(chat llama.Chat) error {
		prompt, err := engine.Render(chat, request)
		if err != nil {
			return told(err)
		}
		return p.printPrompt(prompt, o.parts)
	}
	switch {
	case o.model != "":
		return p.withVocabulary(o.model, func(model llama.Model) error {
			chat, err := model.NewChat(llama.ChatParams{Template: source})
			if err != nil {
				return err
			}
			return show(chat)
		})
	case source != "":
		chat, err := p.template(source)
		if err != nil {
			return err
		}
		return show(chat)
	}
	return errors.New("no template: give a model with --model FILE, or a template with --chat-template FILE")
}

// readRequest reads a chat request from the named file or from stdin.
func (p *program) readRequest(args []string) (*engine.Request, error) {
	body, err := p.readInput(args)
	if err != nil {
		return nil, err
	}
	request, err := handlers.DecodeChat(body)
	if err != nil {
		return nil, fmt.Errorf("request: %w", told(err))
	}
	return request, nil
}

// readInput reads the named file, or stdin when there is none or it is "-".
func (p *program) readInput(args []string) ([]byte, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.ReadAll(p.in)
	}
	return os.ReadFile(args[0])
}

// told is an error in the words that a client of the server is told.
func told(err error) error {
	e, ok := errors.AsType[*engine.Error](err)
	switch {
	case !ok:
		return err
	case e.Param != "":
		return fmt.Errorf("%s: %s", e.Param, e.Message)
	}
	return errors.New(e.Message)
}

// withVocabulary loads a model's vocabulary and template for f alone.
func (p *program) withVocabulary(file string, f func(llama.Model) error) (err error) {
	log := slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelError}))
	backend, err := p.openBackend(log, 1)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, backend) }()
	model, err := backend.Load(file, llama.ModelParams{VocabOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = closing(err, model) }()
	return f(model)
}

func (p *program) printPrompt(prompt llama.Prompt, parts bool) error {
	if !parts {
		for _, part := range prompt.Parts {
			if _, err := p.out.Write(part.Text); err != nil {
				return err
			}
		}
		return nil
	}
	type jsonPart struct {
		Text    string `json:"text"`
		Special bool   `json:"special"`
	}
	list := make([]jsonPart, len(prompt.Parts))
	for i, part := range prompt.Parts {
		list[i] = jsonPart{string(part.Text), part.Special}
	}
	return p.printJSON(list)
}

// printJSON prints v with texts as they are, not escaped for HTML.
func (p *program) printJSON(v any) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
