package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/b3os/b3infer/handlers"
	"github.com/b3os/b3infer/llama"
)

// maxAlias is how long a model's name may be in a request.
const maxAlias = 256

// serveOptions are the flags of serve. Zero means that the default is worked
// out from the machine and the model.
type serveOptions struct {
	model, alias  string
	listen        string
	ctx           int
	parallel      int
	threads       int
	batch, ubatch int
	gpuLayers     int
	kv            string
	chatTemplate  string
	data          string
	keepRequests  time.Duration
	nodeName      string
	maxRequest    int64
	access        accessOptions
	gateway       gatewayOptions
	queueTimeout  time.Duration
	grace         time.Duration
	log           logOptions
}

func (o *serveOptions) flags(flags *pflag.FlagSet) {
	modelFlag(flags, &o.model)
	flags.StringVar(&o.alias, "alias", "", "the `name` that clients ask for (default the file's name without .gguf)")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:7700", "the `address` to listen on")
	o.access.flags(flags)
	dataFlag(flags, &o.data)
	flags.DurationVar(&o.keepRequests, "keep-requests", 30*24*time.Hour, "how long records of requests are kept; 0 is for ever")
	o.gateway.flags(flags)
	flags.Int64Var(&o.maxRequest, "max-request-bytes", 10<<20, "`bytes` of the largest request's body, unpacked")
	flags.StringVar(&o.chatTemplate, "chat-template", "", "a Jinja `file` to use in place of the model's own chat template")
	flags.IntVar(&o.ctx, "ctx", 0, "`tokens` that the KV cache holds, of all requests together (default the model's\ntraining context, at most 32768 on a CPU, or what fits in memory)")
	flags.IntVar(&o.parallel, "parallel", 32, "`requests` that run at a time; others wait")
	flags.DurationVar(&o.queueTimeout, "queue-timeout", 120*time.Second, "how long a request may wait before it is refused")
	flags.IntVar(&o.threads, "threads", 0, "CPU `threads` (default the physical cores less one)")
	flags.IntVar(&o.batch, "batch", 2048, "most `tokens` of one step")
	flags.IntVar(&o.ubatch, "ubatch", 512, "most `tokens` that are computed at a time within a step")
	flags.IntVar(&o.gpuLayers, "gpu-layers", -1, "`layers` that are kept in GPU memory; -1 is all")
	flags.StringVar(&o.kv, "kv-type", string(llama.KVF16), "number `format` of the KV cache: f16, q8_0 or q4_0")
	flags.StringVar(&o.nodeName, "node-name", "", "this node's `name` in answers (default the computer's name)")
	flags.DurationVar(&o.grace, "grace", 30*time.Second, "how long running requests may take to end when the server is stopped")
	o.log.flags(flags)
}

// check finds what is wrong with the flags by themselves.
func (o *serveOptions) check() error {
	if o.model == "" {
		return errors.New("no model: give a GGUF file with --model FILE")
	}
	for _, n := range []struct {
		flag        string
		value, from int
		to          int
	}{
		{"ctx", o.ctx, 0, 1 << 30},
		{"parallel", o.parallel, 1, llama.MaxSequences},
		{"threads", o.threads, 0, 512},
		{"batch", o.batch, 1, 1 << 20},
		{"ubatch", o.ubatch, 1, 1 << 20},
		{"gpu-layers", o.gpuLayers, -1, 1 << 20},
	} {
		if n.value < n.from || n.value > n.to {
			return fmt.Errorf("--%s %d: must be between %d and %d", n.flag, n.value, n.from, n.to)
		}
	}
	if o.ctx > 0 && o.ctx < minContext {
		return fmt.Errorf("--ctx %d: must be at least %d", o.ctx, minContext)
	}
	if strings.ContainsFunc(o.alias, unicode.IsControl) || utf8.RuneCountInString(o.alias) > maxAlias {
		return fmt.Errorf("--alias: at most %d characters, none of them a control character", maxAlias)
	}
	switch llama.KVType(o.kv) {
	case llama.KVF16, llama.KVQ8_0, llama.KVQ4_0:
	default:
		return fmt.Errorf("--kv-type %q: f16, q8_0 and q4_0 are known", o.kv)
	}
	if o.queueTimeout <= 0 || o.grace < 0 || o.keepRequests < 0 {
		return errors.New("--queue-timeout must be above 0, --grace and --keep-requests not below it")
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("--listen %s: must be HOST:PORT, such as 127.0.0.1:7700", o.listen)
	}
	if o.maxRequest < 1 || o.maxRequest > handlers.MaxBody {
		return fmt.Errorf("--max-request-bytes %d: must be between 1 and %d", o.maxRequest, handlers.MaxBody)
	}
	return errors.Join(o.access.check(), o.gateway.check())
}

// readTemplate is the content of --chat-template.
func readTemplate(file string) (string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--chat-template: %w", err)
	}
	if len(source) == 0 {
		return "", fmt.Errorf("--chat-template: %s is empty", file)
	}
	return string(source), nil
}

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve --model FILE",
		Short: "Load a model and answer requests",
		Long: `serve loads a model from a GGUF file and answers OpenAI chat completions on
http://127.0.0.1:7700/v1. The port opens at once; while the model loads,
requests are answered with 503 and GET /healthz tells what is going on.

The first SIGINT or SIGTERM lets running requests end, a second one does not.

Without keys everyone on this computer may ask. Once there is a key, made by
b3infer keys create or given with --api-key, every request needs one. To be
reached from other computers the server needs one, too.

Each flag can also be given as an environment variable, --api-key KEY as
B3INFER_API_KEY=KEY, where other users of the computer do not see it.`,
		Example: `  b3infer serve --model SmolLM2-135M-Instruct.Q4_1.gguf
  b3infer serve --model m.gguf --alias gpt-local --ctx 16384
  b3infer keys create && b3infer serve --model m.gguf --listen 0.0.0.0:7700`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return p.serve(cmd.Context(), o)
		},
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd.Flags())
	return cmd
}
