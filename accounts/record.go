package accounts

import (
	"database/sql"
	"encoding/json"
	"time"
)

// A Record is what is known of a request that has ended: never its content.
type Record struct {
	ID             string    // req_…
	Time           time.Time // when its first byte came
	OrganizationID string
	ProjectID      string
	KeyID          string // empty without a key
	Route          string // as the server spells it, such as /v1/chat/completions
	Model          string // as it was asked for; empty if that did not matter
	Streamed       bool
	Status         int    // of HTTP
	Error          string // the error's code, never its message, which may quote content; empty if it went well
	FinishReason   string // empty if no answer came to an end
	ClientGone     bool   // the client left before the end
	Usage          Usage  // what is paid for
	Cost           Credits
	Phases         Phases
}

// Phases are how long the parts of a request took; 0 is a part it did not
// have.
type Phases struct {
	Auth    time.Duration // looking up the key
	Render  time.Duration // making the prompt
	Queue   time.Duration // waiting for a place
	Prefill time.Duration // computing the prompt
	TTFT    time.Duration // from the request's head to the first token
	Decode  time.Duration // from the first token to the last
	Total   time.Duration // from the first byte that came to the last one sent
}

// MarshalJSON writes the record as GET /v1/requests/{id} answers it.
func (r Record) MarshalJSON() ([]byte, error) {
	type usage struct {
		Prompt     int     `json:"prompt_tokens"`
		Cached     int     `json:"cached_tokens"`
		Completion int     `json:"completion_tokens"`
		Reasoning  int     `json:"reasoning_tokens"`
		Cost       Credits `json:"cost"`
	}
	type timing struct {
		Auth    float64 `json:"auth_ms"`
		Render  float64 `json:"render_ms"`
		Queue   float64 `json:"queue_ms"`
		Prefill float64 `json:"prefill_ms"`
		TTFT    float64 `json:"ttft_ms"`
		Decode  float64 `json:"decode_ms"`
		Total   float64 `json:"total_ms"`
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	orNull := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	u, p := r.Usage, r.Phases
	return json.Marshal(struct {
		ID             string    `json:"request_id"`
		Time           time.Time `json:"time"`
		OrganizationID string    `json:"organization_id"`
		ProjectID      string    `json:"project_id"`
		KeyID          *string   `json:"key_id"`
		Route          string    `json:"route"`
		Model          *string   `json:"model"`
		Streamed       bool      `json:"stream"`
		Status         int       `json:"status"`
		Error          *string   `json:"error"`
		FinishReason   *string   `json:"finish_reason"`
		ClientGone     bool      `json:"client_gone"`
		Usage          usage     `json:"usage"`
		Timing         timing    `json:"timing"`
	}{
		r.ID, r.Time.UTC(), r.OrganizationID, r.ProjectID, orNull(r.KeyID), r.Route, orNull(r.Model), r.Streamed,
		r.Status, orNull(r.Error), orNull(r.FinishReason), r.ClientGone,
		usage{u.Prompt, u.Cached, u.Completion, u.Reasoning, r.Cost},
		timing{ms(p.Auth), ms(p.Render), ms(p.Queue), ms(p.Prefill), ms(p.TTFT), ms(p.Decode), ms(p.Total)},
	})
}

// normal is r as it reads when it comes back from the file.
func (r Record) normal() Record {
	r.Time = r.Time.UTC().Truncate(time.Millisecond)
	p := &r.Phases
	for _, d := range []*time.Duration{&p.Auth, &p.Render, &p.Queue, &p.Prefill, &p.TTFT, &p.Decode, &p.Total} {
		*d = d.Truncate(time.Microsecond)
	}
	return r
}

const recordColumns = `id, time, organization_id, project_id, key_id, route, model, streamed, status, error, finish_reason, client_gone,
	prompt, cached, completion, reasoning, cost, auth, render, queue, prefill, ttft, decode, total`

const insertRecord = "INSERT INTO requests (" + recordColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT DO NOTHING`

// values are those of recordColumns.
func (r *Record) values() []any {
	u, p := r.Usage, r.Phases
	return []any{
		r.ID, r.Time.UnixMilli(), r.OrganizationID, r.ProjectID, r.KeyID, r.Route, r.Model, r.Streamed, r.Status, r.Error, r.FinishReason, r.ClientGone,
		u.Prompt, u.Cached, u.Completion, u.Reasoning, r.Cost, p.Auth.Microseconds(), p.Render.Microseconds(), p.Queue.Microseconds(),
		p.Prefill.Microseconds(), p.TTFT.Microseconds(), p.Decode.Microseconds(), p.Total.Microseconds(),
	}
}

func scanRecord(rows *sql.Rows) (r Record, err error) {
	u, p := &r.Usage, &r.Phases
	var at sql.NullInt64
	durations := []*time.Duration{&p.Auth, &p.Render, &p.Queue, &p.Prefill, &p.TTFT, &p.Decode, &p.Total}
	targets := []any{
		&r.ID, &at, &r.OrganizationID, &r.ProjectID, &r.KeyID, &r.Route, &r.Model, &r.Streamed, &r.Status, &r.Error, &r.FinishReason, &r.ClientGone,
		&u.Prompt, &u.Cached, &u.Completion, &u.Reasoning, &r.Cost,
	}
	for _, d := range durations {
		targets = append(targets, (*int64)(d))
	}
	err = rows.Scan(targets...)
	r.Time = toTime(at)
	for _, d := range durations {
		*d *= time.Microsecond
	}
	return r, err
}
