package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/b3os/b3infer/accounts"
)

func (p *program) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Create, list and revoke API keys, and set limits",
		Long: `keys looks after who may use the server and how much. It works on the files in
the folder of --data, also while a server runs on them: what is changed here
holds there within a second.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.keysCreateCommand(), p.keysListCommand(), p.keysRevokeCommand(), p.keysLimitsCommand())
	return cmd
}

// storeFile is the file of accounts in the folder of --data.
const storeFile = "accounts.db"

// dataFlag adds --data to a command.
func dataFlag(flags *pflag.FlagSet, folder *string) {
	flags.StringVar(folder, "data", "", "the `folder` of keys, limits and the log of requests (default b3infer in\n$XDG_STATE_HOME, or in ~/.local/state)")
}

func jsonFlag(flags *pflag.FlagSet, asJSON *bool) {
	flags.BoolVar(asJSON, "json", false, "print JSON")
}

// storePath is the file of accounts for a value of --data.
func (p *program) storePath(folder string) (string, error) {
	if folder != "" {
		return filepath.Join(folder, storeFile), nil
	}
	if state, ok := p.env("XDG_STATE_HOME"); ok && filepath.IsAbs(state) { // others are to be ignored
		return filepath.Join(state, "b3infer", storeFile), nil
	}
	if home, ok := p.env("HOME"); ok && home != "" {
		return filepath.Join(home, ".local", "state", "b3infer", storeFile), nil
	}
	return "", errors.New("no home folder to keep data in: name a folder with --data DIR")
}

// withStore opens the accounts for f alone.
func (p *program) withStore(ctx context.Context, folder string, f func(*accounts.Store) error) (err error) {
	path, err := p.storePath(folder)
	if err != nil {
		return err
	}
	store, err := accounts.Open(ctx, path, accounts.Options{})
	if err != nil {
		return err
	}
	defer func() { err = closing(err, store) }()
	return f(store)
}

// organizationNamed finds an organization, or says which there are.
func organizationNamed(ctx context.Context, store *accounts.Store, name string) (accounts.Organization, error) {
	list, err := store.Organizations(ctx)
	if err != nil {
		return accounts.Organization{}, err
	}
	names := make([]string, len(list))
	for i, o := range list {
		if o.Name == name {
			return o, nil
		}
		names[i] = o.Name
	}
	return accounts.Organization{}, fmt.Errorf("no organization is called %q; there are: %s", name, strings.Join(names, ", "))
}

// printTable prints rows of cells in columns, the first row being the head.
func (p *program) printTable(rows [][]string) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if row[i] = cell; cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// timeText is a time as tables show it; "" for none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func creditsText(c *accounts.Credits) string {
	if c == nil {
		return ""
	}
	return c.String()
}
