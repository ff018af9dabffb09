package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fromEnvironment sets the flags that the command line leaves out from the
// environment variables of their names.
func fromEnvironment(flags *pflag.FlagSet, env func(string) (string, bool)) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || err != nil {
			return
		}
		name := variable(f.Name)
		text, ok := env(name)
		if !ok || text == "" {
			return
		}
		if setErr := flags.Set(f.Name, text); setErr != nil {
			err = fmt.Errorf("%s: %q is not a %s", name, text, f.Value.Type())
		}
	})
	return err
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "B3INFER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func flagError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (%s --help lists the flags)", err, cmd.CommandPath())
}

// modelFlag adds --model to a command.
func modelFlag(flags *pflag.FlagSet, model *string) {
	flags.StringVarP(model, "model", "m", "", "the model's GGUF `file`; the first one of a split model")
}

// logOptions say what is logged and how.
type logOptions struct{ format, level string }

func (o *logOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.format, "log-format", "text", "how log lines are written: text or json")
	flags.StringVar(&o.level, "log-level", "info", "the least that is logged: debug, info, warn or error")
}

func (o *logOptions) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch o.level {
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(o.level)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("--log-level %q: debug, info, warn and error are known", o.level)
	}
	handler := &slog.HandlerOptions{Level: level}
	switch o.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, handler)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, handler)), nil
	}
	return nil, fmt.Errorf("--log-format %q: text and json are known", o.format)
}
