package main

import (
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/llama"
)

// A program is the commands and what they need of the world around them, so
// that tests can give them another one.
type program struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	root     fs.FS // the root folder, for what the system says about itself

	// openBackend opens llama.cpp; template makes a chat of a template without
	// a model. They are libllama's.
	openBackend func(log *slog.Logger, threads int) (llama.Backend, error)
	template    func(source string) (llama.Chat, error)
}

func newProgram() *program {
	return &program{
		in:          os.Stdin,
		out:         os.Stdout,
		err:         os.Stderr,
		env:         os.LookupEnv,
		root:        os.DirFS("/"),
		openBackend: openBackend,
		template:    newTemplate,
	}
}

// command is the tree of commands.
func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "b3infer",
		Short: "Serve a language model through the OpenAI API",
		Long: `b3infer serves a language model from a GGUF file through the OpenAI API.

Every flag can also be given as an environment variable: B3INFER_ and the
flag's name in upper case with _ for -, so --gpu-layers is B3INFER_GPU_LAYERS.
A flag on the command line wins.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags(), p.env) },
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(p.serveCommand(), p.templateCommand(), p.tokenizeCommand(), p.grammarCommand(),
		p.keysCommand(), p.requestsCommand(), p.versionCommand())
	return root
}
