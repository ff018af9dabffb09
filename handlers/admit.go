package handlers

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// limitCodes are the codes of requests that a limit refuses.
var limitCodes = map[accounts.Rule]engine.Code{
	accounts.RequestsPerMinute:   codeRate,
	accounts.TokensPerMinute:     codeRate,
	accounts.ImageBytesPerMinute: codeRate,
	accounts.RequestsInFlight:    codeInFlight,
	accounts.TokensPerDay:        codeQuota,
	accounts.OrganizationCredit:  codeCredits,
	accounts.KeySpendCap:         codeCredits,
}

// admit books the request against the limits of who asks. What was booked is
// settled at the end of the exchange.
func (s *server) admit(c *echo.Context, model string, e accounts.Estimate) error {
	x := of(c)
	ticket, err := s.accounts.Admit(x.principal, model, e)
	if refused, ok := errors.AsType[*accounts.LimitError](err); ok {
		if !refused.Exhausted() {
			x.standing = &refused.Standing
		}
		return &engine.Error{Code: limitCodes[refused.Rule], Message: refused.Error(), RetryAfter: refused.RetryAfter}
	}
	if err != nil {
		return err
	}
	x.ticket = ticket
	if standing, ok := ticket.Standing(); ok {
		x.standing = &standing
	}
	return nil
}

// estimate is what a prepared request may take: an answer ends at the context.
func estimate(e Engine, p *engine.Prepared, maxTokens int) accounts.Estimate {
	left := max(1, e.Info().Context-p.PromptTokens())
	return accounts.Estimate{Prompt: p.PromptTokens(), MaxTokens: min(cmp.Or(maxTokens, accounts.DefaultCap), left)}
}

// settle puts what was used in the place of what was booked, and keeps its cost.
// The node's own failures cost nothing.
func (x *exchange) settle() {
	if x.ticket == nil {
		return
	}
	if !x.finished && x.used != nil {
		x.usage = x.used()
	}
	if v, ok := verdicts[x.code]; ok && v.status >= http.StatusInternalServerError {
		x.usage = engine.Usage{}
	}
	x.cost = x.ticket.Settle(x.paid())
}

// paid are the tokens that the client pays for.
func (x *exchange) paid() accounts.Usage {
	return accounts.Usage{
		Prompt: x.usage.Prompt, Cached: x.usage.Cached, Completion: x.usage.Answer, Reasoning: x.usage.Reasoning,
	}
}

// setLimits tells in the response's head how the limit stands that is closest
// to exhaustion.
func (x *exchange) setLimits(h http.Header, status int) {
	if x.standing == nil || status != http.StatusOK && status != http.StatusTooManyRequests {
		return
	}
	h.Set("RateLimit-Limit", strconv.FormatInt(x.standing.Limit, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(x.standing.Remaining, 10))
	h.Set("RateLimit-Reset", strconv.Itoa(int(x.standing.Reset/time.Second)))
}
