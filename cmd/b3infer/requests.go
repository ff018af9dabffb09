package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/accounts"
)

type requestsOptions struct {
	data, key string
	last      int
	json      bool
}

func (p *program) requestsCommand() *cobra.Command {
	var o requestsOptions
	cmd := &cobra.Command{
		Use:   "requests [ID]",
		Short: "Show the requests that were served",
		Long: `requests lists what is known of the last requests, the newest first, or of the
one with the given id, which clients find in the header x-request-id: who asked
for which model, what came of it, the tokens and the times. What was said is
not kept. A running server's requests show within a second.`,
		Example: `  b3infer requests --last 100
  b3infer requests req_01m5t4yg394wegr3j4y01qb363`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.last < 1 {
				return fmt.Errorf("--last %d: must be at least 1", o.last)
			}
			return p.withStore(cmd.Context(), o.data, func(store *accounts.Store) error {
				if len(args) == 1 {
					return p.showRequest(cmd.Context(), store, args[0], o.json)
				}
				return p.listRequests(cmd.Context(), store, o)
			})
		},
	}
	flags := cmd.Flags()
	dataFlag(flags, &o.data)
	flags.IntVar(&o.last, "last", 20, "the most `requests` to list")
	flags.StringVar(&o.key, "key", "", "list only requests with the key of this `id`")
	jsonFlag(flags, &o.json)
	return cmd
}

func (p *program) listRequests(ctx context.Context, store *accounts.Store, o requestsOptions) error {
	records, err := store.Requests(ctx, accounts.RequestFilter{KeyID: o.key, Limit: o.last})
	if err != nil {
		return err
	}
	if o.json {
		return p.printJSON(records)
	}
	if len(records) == 0 {
		fmt.Fprintln(p.err, "b3infer: there are no requests")
		return nil
	}
	rows := [][]string{{"TIME", "ID", "STATUS", "MODEL", "PROMPT", "CACHED", "ANSWER", "TTFT", "TOTAL", "ENDED BY", "KEY"}}
	for _, r := range records {
		rows = append(rows, []string{
			timeText(r.Time), r.ID, strconv.Itoa(r.Status), r.Model,
			strconv.Itoa(r.Usage.Prompt), strconv.Itoa(r.Usage.Cached), strconv.Itoa(r.Usage.Completion),
			phaseText(r.Phases.TTFT), phaseText(r.Phases.Total), ending(r), r.KeyID,
		})
	}
	return p.printTable(rows)
}

// ending is what ended a request, in one word.
func ending(r accounts.Record) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.ClientGone:
		return "client left"
	}
	return r.FinishReason
}

// phaseText is a duration in tables; "" for a part that a request did not have.
func phaseText(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func (p *program) showRequest(ctx context.Context, store *accounts.Store, id string, asJSON bool) error {
	r, err := store.Request(ctx, id)
	if errors.Is(err, accounts.ErrNotFound) {
		return fmt.Errorf("no request has the id %q; b3infer requests lists the last ones", id)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(r)
	}
	projects, err := projectNames(ctx, store)
	if err != nil {
		return err
	}
	yesNo := map[bool]string{true: "yes", false: "no"}
	return p.printTable([][]string{
		{"id", r.ID},
		{"time", timeText(r.Time)},
		{"project", projects[r.ProjectID]},
		{"key", r.KeyID},
		{"route", r.Route},
		{"model", r.Model},
		{"streamed", yesNo[r.Streamed]},
		{"status", strconv.Itoa(r.Status)},
		{"error", r.Error},
		{"finish reason", r.FinishReason},
		{"client left", yesNo[r.ClientGone]},
		{"prompt", fmt.Sprintf("%d tokens, %d of them cached", r.Usage.Prompt, r.Usage.Cached)},
		{"answer", fmt.Sprintf("%d tokens, %d of them reasoning", r.Usage.Completion, r.Usage.Reasoning)},
		{"cost", r.Cost.String() + " credits"},
		{"auth", phaseText(r.Phases.Auth)},
		{"render", phaseText(r.Phases.Render)},
		{"queue", phaseText(r.Phases.Queue)},
		{"prefill", phaseText(r.Phases.Prefill)},
		{"first token", phaseText(r.Phases.TTFT)},
		{"decode", phaseText(r.Phases.Decode)},
		{"total", phaseText(r.Phases.Total)},
	})
}
