package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/accounts"
)

func (p *program) keysListCommand() *cobra.Command {
	var data string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all keys, revoked and expired ones too",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), data, func(store *accounts.Store) error { return p.listKeys(cmd.Context(), store, asJSON) })
		},
	}
	dataFlag(cmd.Flags(), &data)
	jsonFlag(cmd.Flags(), &asJSON)
	return cmd
}

func (p *program) listKeys(ctx context.Context, store *accounts.Store, asJSON bool) error {
	keys, err := store.Keys(ctx, "")
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(keys)
	}
	if len(keys) == 0 {
		fmt.Fprintln(p.err, "b3infer: there are no keys; create one with b3infer keys create")
		return nil
	}
	projects, err := projectNames(ctx, store)
	if err != nil {
		return err
	}
	rows := [][]string{{"ID", "NAME", "PROJECT", "SCOPES", "STATE", "SPENT", "CAP", "EXPIRES", "LAST USED"}}
	for _, k := range keys {
		name := k.Name
		if k.Kind == accounts.KindToken {
			name = strings.TrimSpace(name + " (token of " + k.User + ")")
		}
		rows = append(rows, []string{k.ID, name, projects[k.ProjectID], strings.ReplaceAll(k.Scopes.String(), " ", ","), keyState(k, time.Now()),
			k.Spent.String(), creditsText(k.SpendCap), timeText(k.ExpiresAt), timeText(k.LastUsedAt)})
	}
	return p.printTable(rows)
}

func keyState(k accounts.Key, now time.Time) string {
	switch err := k.Err(now); {
	case errors.Is(err, accounts.ErrRevoked):
		return "revoked"
	case errors.Is(err, accounts.ErrExpired):
		return "expired"
	case k.SpendCap != nil && k.Spent >= *k.SpendCap:
		return "spent"
	}
	return "active"
}

// projectNames are organization/project by the project's id.
func projectNames(ctx context.Context, store *accounts.Store) (map[string]string, error) {
	organizations, err := organizationNames(ctx, store)
	if err != nil {
		return nil, err
	}
	projects, err := store.Projects(ctx)
	names := map[string]string{}
	for _, project := range projects {
		names[project.ID] = organizations[project.OrganizationID] + "/" + project.Name
	}
	return names, err
}

func organizationNames(ctx context.Context, store *accounts.Store) (map[string]string, error) {
	organizations, err := store.Organizations(ctx)
	names := map[string]string{}
	for _, o := range organizations {
		names[o.ID] = o.Name
	}
	return names, err
}

func (p *program) keysRevokeCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:     "revoke ID...",
		Short:   "End keys for good",
		Long:    "revoke ends keys and the browser sessions that were opened with them. A running server refuses them within a second.",
		Example: "  b3infer keys revoke key_01m5t4yg394wegr3j4y01qb363",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return p.withStore(cmd.Context(), data, func(store *accounts.Store) error { return p.revokeKeys(cmd.Context(), store, ids) })
		},
	}
	dataFlag(cmd.Flags(), &data)
	return cmd
}

// revokeKeys revokes what it can, and fails if that was not all.
func (p *program) revokeKeys(ctx context.Context, store *accounts.Store, ids []string) error {
	var errs []error
	for _, id := range ids {
		switch _, err := store.RevokeKey(ctx, id); {
		case errors.Is(err, accounts.ErrNotFound):
			errs = append(errs, fmt.Errorf("no key has the id %q; b3infer keys list shows them", id))
		case err != nil:
			errs = append(errs, err)
		default:
			fmt.Fprintf(p.out, "revoked %s\n", id)
		}
	}
	return errors.Join(errs...)
}
