package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/accounts"
)

// limitUsages say what the rules are about.
var limitUsages = map[accounts.Rule]string{
	accounts.RequestsPerMinute:   "`requests` per minute on a model",
	accounts.TokensPerMinute:     "`tokens` per minute on a model, of prompts and answers together",
	accounts.ImageBytesPerMinute: "`bytes` of remote images per minute on a model",
	accounts.RequestsInFlight:    "`requests` in flight, on all models together",
	accounts.TokensPerDay:        "`tokens` per day (UTC), on all models together",
	accounts.InputPrice:          "`credits` for a million tokens of prompt; 1 if none is set",
	accounts.CachedPrice:         "`credits` for a million tokens of prompt that were in the cache; as the input price if none is set",
	accounts.OutputPrice:         "`credits` for a million tokens of answer; 1 if none is set",
}

type keysLimitsOptions struct {
	data, organization, credit string
	json                       bool
	rules                      map[accounts.Rule]*string
}

func (p *program) keysLimitsCommand() *cobra.Command {
	o := keysLimitsOptions{rules: map[accounts.Rule]*string{}}
	cmd := &cobra.Command{
		Use:   "limits [MODEL]",
		Short: "Show and set limits, prices and credits",
		Long: `limits shows the limits and prices that are set or, with flags, sets some.

Limits hold for all keys of an organization together. They are set for one
model or for every one, and for the organization of --organization or for every
one. Of several that apply, the one for the organization and the model counts,
then the one for the organization, then the one for the model.

A limit is a number, "none" for no limit where one would be inherited, or
"inherit" to take it away. Without any limit all is allowed.

--credit lets an organization spend so many credits from now on, or "none" for
any number. Once they are spent its requests are refused.`,
		Example: `  b3infer keys limits --requests-per-minute 60 --tokens-per-minute 200000
  b3infer keys limits qwen3.5-9b --organization acme --tokens-per-minute none
  b3infer keys limits --organization acme --credit 50`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withStore(cmd.Context(), o.data, func(store *accounts.Store) error {
				if err := o.set(cmd.Context(), store, args); err != nil {
					return err
				}
				return p.showLimits(cmd.Context(), store, o.json)
			})
		},
	}
	flags := cmd.Flags()
	dataFlag(flags, &o.data)
	flags.StringVar(&o.organization, "organization", "", "the `name` of the organization that the limits are for (default every one)")
	for _, rule := range accounts.Rules() {
		o.rules[rule] = flags.String(strings.ReplaceAll(string(rule), "_", "-"), "", limitUsages[rule])
	}
	flags.StringVar(&o.credit, "credit", "", "`credits` that the organization may spend from now on")
	jsonFlag(flags, &o.json)
	return cmd
}

// set sets what the flags say.
func (o *keysLimitsOptions) set(ctx context.Context, store *accounts.Store, args []string) error {
	set, unset, err := o.values()
	if err != nil {
		return err
	}
	if o.credit != "" && o.organization == "" {
		return errors.New("--credit is one organization's: name it with --organization NAME")
	}
	var target accounts.Target
	if len(args) == 1 {
		target.Model = args[0]
	}
	if o.organization != "" {
		found, err := organizationNamed(ctx, store, o.organization)
		if err != nil {
			return err
		}
		target.Organization = found.ID
	}
	if len(set)+len(unset) > 0 {
		if err := store.SetRules(ctx, target, set, unset); err != nil {
			return err
		}
	}
	return o.setCredit(ctx, store, target.Organization)
}

func (o *keysLimitsOptions) setCredit(ctx context.Context, store *accounts.Store, organizationID string) error {
	switch o.credit {
	case "":
		return nil
	case "none":
		return store.SetCredit(ctx, organizationID, nil)
	}
	credit, err := accounts.ParseCredits(o.credit)
	if err != nil {
		return fmt.Errorf("--credit: %w", err)
	}
	return store.SetCredit(ctx, organizationID, &credit)
}

// values reads the flags of rules.
func (o *keysLimitsOptions) values() (set map[accounts.Rule]int64, unset []accounts.Rule, err error) {
	set = map[accounts.Rule]int64{}
	for _, rule := range accounts.Rules() {
		text := *o.rules[rule]
		flag := "--" + strings.ReplaceAll(string(rule), "_", "-")
		switch {
		case text == "":
		case text == "inherit":
			unset = append(unset, rule)
		case rule.IsPrice():
			price, err := accounts.ParseCredits(text)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", flag, err)
			}
			set[rule] = int64(price)
		case text == "none":
			set[rule] = accounts.Unlimited
		default:
			n, err := strconv.ParseUint(text, 10, 62)
			if err != nil {
				return nil, nil, fmt.Errorf("%s %q: give a number, none or inherit", flag, text)
			}
			set[rule] = int64(n)
		}
	}
	return set, unset, nil
}

// showLimits prints all rules, and the credits of organizations.
func (p *program) showLimits(ctx context.Context, store *accounts.Store, asJSON bool) error {
	sets := store.RuleSets()
	organizations, err := store.Organizations(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(struct {
			Limits        []accounts.RuleSet      `json:"limits"`
			Organizations []accounts.Organization `json:"organizations"`
		}{sets, organizations})
	}
	names, err := organizationNames(ctx, store)
	if err != nil {
		return err
	}
	rows := [][]string{{"ORGANIZATION", "MODEL", "LIMIT", "VALUE"}}
	for _, set := range sets {
		for _, rule := range accounts.Rules() {
			if value, ok := set.Rules[rule]; ok {
				rows = append(rows, []string{every(names[set.Organization]), every(set.Model), strings.ReplaceAll(string(rule), "_", " "), ruleText(rule, value)})
			}
		}
	}
	for _, o := range organizations {
		if o.Credit != nil {
			rows = append(rows, []string{o.Name, every(""), "credit", fmt.Sprintf("%v, of which %v are spent", *o.Credit, o.Spent)})
		}
	}
	if len(rows) == 1 {
		fmt.Fprintln(p.err, "b3infer: no limits are set")
		return nil
	}
	return p.printTable(rows)
}

func every(name string) string {
	if name == "" {
		return "every"
	}
	return name
}

func ruleText(rule accounts.Rule, value int64) string {
	switch {
	case rule.IsPrice():
		return accounts.Credits(value).String()
	case value == accounts.Unlimited:
		return "none"
	}
	return strconv.FormatInt(value, 10)
}
