package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/accounts"
)

type keysCreateOptions struct {
	data                  string
	name, user            string
	organization, project string
	scopes                []string
	expires, spendCap     string
	json                  bool
}

func (p *program) keysCreateCommand() *cobra.Command {
	var o keysCreateOptions
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an API key and print its secret",
		Long: `create makes an API key and prints its secret on stdout. This is the only time
that it can be seen: only its hash is kept.

A key belongs to a project, and a project to an organization. Both are made if
there are none of these names. Limits and credits are the organization's.

The scopes are infer:run, to generate and to count tokens; infer:read, to list
models and to read records of requests; and keys:manage, to create, list and
revoke keys of the same project over HTTP.`,
		Example: `  b3infer keys create --name laptop
  b3infer keys create --project web --expires 90d --spend-cap 20
  B3INFER_API_KEY=$(b3infer keys create --name tests)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.createKey(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	dataFlag(flags, &o.data)
	flags.StringVar(&o.name, "name", "", "what to `call` the key in lists")
	flags.StringVar(&o.organization, "organization", "default", "the `name` of the organization that pays")
	flags.StringVar(&o.project, "project", "default", "the `name` of the project that the key belongs to")
	flags.StringSliceVar(&o.scopes, "scope", []string{string(accounts.ScopeRun), string(accounts.ScopeRead)}, "what the key may do; several `scopes` have commas between them")
	flags.StringVar(&o.expires, "expires", "", "`when` the key ends: a date such as 2027-01-31 (UTC), or a time from now such as 90d or 12h")
	flags.StringVar(&o.spendCap, "spend-cap", "", "all the `credits` that the key may ever spend; a million tokens cost one, unless prices are set")
	flags.StringVar(&o.user, "user", "", "make a token that stands for this `user`, in place of a key")
	jsonFlag(flags, &o.json)
	return cmd
}

// wanted are the options as a key to be made.
func (o *keysCreateOptions) wanted(now time.Time) (n accounts.NewKey, err error) {
	n = accounts.NewKey{Kind: accounts.KindKey, Name: o.name, User: o.user}
	if o.user != "" {
		n.Kind = accounts.KindToken
	}
	for _, scope := range o.scopes {
		n.Scopes = append(n.Scopes, accounts.Scope(strings.TrimSpace(scope)))
	}
	if o.expires != "" {
		if n.ExpiresAt, err = expiry(o.expires, now); err != nil {
			return n, err
		}
	}
	if o.spendCap != "" {
		limit, err := accounts.ParseCredits(o.spendCap)
		if err != nil {
			return n, fmt.Errorf("--spend-cap: %w", err)
		}
		n.SpendCap = &limit
	}
	return n, nil
}

// expiry reads a date or a time from now.
func expiry(text string, now time.Time) (time.Time, error) {
	if date, err := time.Parse(time.DateOnly, text); err == nil {
		return date, nil
	}
	if number, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseUint(number, 10, 16); err == nil {
			return now.AddDate(0, 0, int(days)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("--expires %q: give a date such as 2027-01-31, or a time from now such as 90d or 12h", text)
}

func (p *program) createKey(ctx context.Context, o keysCreateOptions) error {
	n, err := o.wanted(time.Now())
	if err != nil {
		return err
	}
	return p.withStore(ctx, o.data, func(store *accounts.Store) error {
		if err := n.Check(time.Now()); err != nil {
			return err // before a project is made for it
		}
		if n.ProjectID, err = p.ensureProject(ctx, store, o.organization, o.project); err != nil {
			return err
		}
		key, secret, err := store.CreateKey(ctx, n)
		if err != nil {
			return err
		}
		if o.json {
			return p.printJSON(struct {
				accounts.Key
				Secret string `json:"secret"`
			}{key, secret})
		}
		fmt.Fprintf(p.err, "b3infer: created %s in project %s; its secret is not shown again\n", key.ID, o.project)
		_, err = fmt.Fprintln(p.out, secret)
		return err
	})
}

// ensureProject is the id of a project, which is made if there is none.
func (p *program) ensureProject(ctx context.Context, store *accounts.Store, organization, project string) (string, error) {
	o, created, err := store.EnsureOrganization(ctx, organization)
	if err != nil {
		return "", err
	}
	if created {
		fmt.Fprintf(p.err, "b3infer: created organization %s\n", organization)
	}
	found, created, err := store.EnsureProject(ctx, o.ID, project)
	if created {
		fmt.Fprintf(p.err, "b3infer: created project %s\n", project)
	}
	return found.ID, err
}
