package accounts

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// A Rule is a limit or a price that can be set.
type Rule string

// The rules. Limits hold for all keys of an organization together.
const (
	RequestsPerMinute   Rule = "requests_per_minute"    // on a model
	TokensPerMinute     Rule = "tokens_per_minute"      // on a model: prompt and answer
	ImageBytesPerMinute Rule = "image_bytes_per_minute" // on a model: bytes of fetched images
	RequestsInFlight    Rule = "requests_in_flight"     // on all models together
	TokensPerDay        Rule = "tokens_per_day"         // on all models together; days are UTC's
	InputPrice          Rule = "input_price"            // millionths of a credit for a million tokens of prompt
	CachedPrice         Rule = "cached_price"           // the same for tokens that were in the cache; without it InputPrice
	OutputPrice         Rule = "output_price"           // the same for tokens of the answer
)

// These two are not set as rules, but by SetCredit and with the key; a
// LimitError may name them.
const (
	OrganizationCredit Rule = "credit"
	KeySpendCap        Rule = "spend_cap"
)

// Unlimited is the value of a limit that is none, in place of one that would
// else be inherited.
const Unlimited = -1

// maxLimit keeps sums far from overflowing.
const maxLimit = 1 << 50

// A Target is what rules are set for.
type Target struct {
	Organization string `json:"organization_id"` // its id; empty: every organization
	Model        string `json:"model"`           // empty: every model
}

// RuleSet are the rules that are set for a target.
type RuleSet struct {
	Target
	Rules map[Rule]int64 `json:"rules"`
}

type ruleKey struct {
	Target
	rule Rule
}

// Rules lists all rules there are.
func Rules() []Rule {
	return []Rule{RequestsPerMinute, TokensPerMinute, ImageBytesPerMinute, RequestsInFlight, TokensPerDay, InputPrice, CachedPrice, OutputPrice}
}

// PerModel tells whether the rule can be set for one model.
func (r Rule) PerModel() bool { return r != RequestsInFlight && r != TokensPerDay }

// IsPrice tells whether the rule is a price, and not a limit.
func (r Rule) IsPrice() bool { return r == InputPrice || r == CachedPrice || r == OutputPrice }

// check tells why the rule cannot have that value for that target.
func (k ruleKey) check(value int64) error {
	lowest, highest := int64(Unlimited), int64(maxLimit)
	if k.rule.IsPrice() {
		lowest, highest = 0, int64(maxPrice)
	}
	switch {
	case !slices.Contains(Rules(), k.rule):
		return &InvalidError{string(k.rule), quote(string(k.rule)) + " is not a limit"}
	case k.Model != "" && !k.rule.PerModel():
		return &InvalidError{string(k.rule), string(k.rule) + " holds for all models together, not for one"}
	case value < lowest || value > highest:
		return &InvalidError{string(k.rule), fmt.Sprintf("%s must be between %d and %d", k.rule, lowest, highest)}
	}
	return nil
}

// SetRules sets the rules in set for a target and takes those in unset away,
// so that they are inherited. Of several rules that apply the one for the
// organization and the model counts, then the one for the organization, then
// the one for the model. Requests that come next feel it, in other processes
// within a second.
func (s *Store) SetRules(ctx context.Context, target Target, set map[Rule]int64, unset []Rule) error {
	for rule, value := range set {
		if err := (ruleKey{target, rule}).check(value); err != nil {
			return err
		}
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		for rule, value := range set {
			if _, err := tx.ExecContext(ctx, `INSERT INTO rules (organization_id, model, name, value) VALUES (?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET value = excluded.value`, target.Organization, target.Model, rule, value); err != nil {
				return err
			}
		}
		for _, rule := range unset {
			if _, err := tx.ExecContext(ctx, "DELETE FROM rules WHERE organization_id = ? AND model = ? AND name = ?",
				target.Organization, target.Model, rule); err != nil {
				return err
			}
		}
		return nil
	})
}

// RuleSets lists what is set, as this process knows it, by organization and
// model.
func (s *Store) RuleSets() []RuleSet {
	sets := map[Target]RuleSet{}
	for key, value := range s.current.Load().rules {
		if sets[key.Target].Rules == nil {
			sets[key.Target] = RuleSet{key.Target, map[Rule]int64{}}
		}
		sets[key.Target].Rules[key.rule] = value
	}
	list := make([]RuleSet, 0, len(sets))
	for _, set := range sets {
		list = append(list, set)
	}
	slices.SortFunc(list, func(a, b RuleSet) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Model, b.Model))
	})
	return list
}

// rule is the value that applies, and false if none is set.
func (d *directory) rule(organization, model string, rule Rule) (int64, bool) {
	for _, target := range [...]Target{{organization, model}, {organization, ""}, {"", model}, {}} {
		if value, ok := d.rules[ruleKey{target, rule}]; ok {
			return value, true
		}
	}
	return 0, false
}

// terms are the limits and prices on which an organization uses a model.
type terms struct {
	limits map[Rule]int64 // only those that there are
	prices prices
}

func (d *directory) terms(organization, model string) terms {
	limits := map[Rule]int64{}
	for _, rule := range Rules() {
		if value, ok := d.rule(organization, model, rule); ok && value != Unlimited && !rule.IsPrice() {
			limits[rule] = value
		}
	}
	price := func(rule Rule, otherwise Credits) Credits {
		if value, ok := d.rule(organization, model, rule); ok {
			return Credits(value)
		}
		return otherwise
	}
	input := price(InputPrice, Credit)
	return terms{limits, prices{input: input, cached: price(CachedPrice, input), output: price(OutputPrice, Credit)}}
}
