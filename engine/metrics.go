package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the engine counts. Names and meanings follow vLLM's where
// there is one of the same meaning (vllm:num_requests_running is
// b3infer_requests_running, and so on).
type metrics struct {
	running, waiting             prometheus.Gauge
	cellsUsed, cellsIdle, cells  prometheus.Gauge
	preemptions                  prometheus.Counter
	promptTokens, answerTokens   prometheus.Counter
	cachedTokens, computedTokens prometheus.Counter
	stepSeconds                  *prometheus.CounterVec
	ttft, interToken, queue, e2e prometheus.Histogram
	stepDuration, stepRows       prometheus.Histogram
	ended                        *prometheus.CounterVec

	schedule, decode, sample, post prometheus.Counter // of stepSeconds
}

var secondBuckets = []float64{.001, .002, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160}

// newMetrics registers with r, if there is one.
func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "b3infer", Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "b3infer", Name: name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "b3infer", Name: name, Help: help}, []string{label})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "b3infer", Name: name, Help: help, Buckets: buckets})
	}
	m := &metrics{
		running:        gauge("requests_running", "Requests that are being computed."),
		waiting:        gauge("requests_waiting", "Requests that wait for a place, preempted ones included."),
		cells:          gauge("kv_cache_cells", "Tokens that the KV cache can hold."),
		cellsUsed:      gauge("kv_cache_cells_used", "Tokens that the KV cache holds, those of ended requests included."),
		cellsIdle:      gauge("kv_cache_cells_idle", "Tokens of ended requests that the KV cache keeps for follow-ups."),
		preemptions:    counter("preemptions_total", "How often a running request gave up its place and its cells."),
		promptTokens:   counter("prompt_tokens_total", "Prompt tokens of admitted requests, cached ones included."),
		cachedTokens:   counter("prompt_tokens_cached_total", "Prompt tokens found in the KV cache."),
		computedTokens: counter("rows_computed_total", "Tokens computed: prompts, answers and what preemption made to be computed again."),
		answerTokens:   counter("generation_tokens_total", "Tokens generated."),
		stepSeconds:    counters("step_seconds_total", "Time of the scheduler's steps by phase.", "phase"),
		ended:          counters("requests_ended_total", "Requests by how they ended: stop, length, left or error.", "reason"),
		ttft:           histogram("time_to_first_token_seconds", "From the request's arrival to its first token.", secondBuckets),
		interToken:     histogram("inter_token_latency_seconds", "Between two tokens of one request.", secondBuckets),
		queue:          histogram("request_queue_time_seconds", "From submission to the first admission.", secondBuckets),
		e2e:            histogram("e2e_request_latency_seconds", "From the request's arrival to its end.", secondBuckets),
		stepDuration:   histogram("step_duration_seconds", "How long a step takes.", secondBuckets),
		stepRows:       histogram("iteration_tokens", "Rows of a step.", prometheus.ExponentialBuckets(1, 2, 13)),
	}
	m.schedule, m.decode = m.stepSeconds.WithLabelValues("schedule"), m.stepSeconds.WithLabelValues("decode")
	m.sample, m.post = m.stepSeconds.WithLabelValues("sample"), m.stepSeconds.WithLabelValues("postprocess")
	if r != nil {
		r.MustRegister(m.running, m.waiting, m.cells, m.cellsUsed, m.cellsIdle, m.preemptions, m.promptTokens, m.cachedTokens,
			m.computedTokens, m.answerTokens, m.stepSeconds, m.ended, m.ttft, m.interToken, m.queue, m.e2e, m.stepDuration, m.stepRows)
	}
	return m
}

// state sets the gauges.
func (m *metrics) state(running, waiting int, c *cache, held int) {
	m.running.Set(float64(running))
	m.waiting.Set(float64(waiting))
	m.cells.Set(float64(c.limits.Cells))
	m.cellsUsed.Set(float64(c.used))
	m.cellsIdle.Set(float64(c.used - held))
}

// admitted counts a sequence that runs for the first time.
func (m *metrics) admitted(s *sequence) {
	m.queue.Observe(s.admitted.Sub(s.submitted).Seconds())
	m.promptTokens.Add(float64(s.promptLen))
	m.cachedTokens.Add(float64(s.cached))
}

// token counts a token that a sequence got, and sets the sequence's times.
func (m *metrics) token(s *sequence, now time.Time) {
	m.answerTokens.Inc()
	if s.first.IsZero() {
		s.first = now
		m.ttft.Observe(now.Sub(s.arrived).Seconds())
	} else {
		m.interToken.Observe(now.Sub(s.last).Seconds())
	}
	s.last = now
}

func (m *metrics) finished(s *sequence, e ending) {
	reason := string(e.reason)
	switch {
	case e.err == errLeft:
		reason = "left"
	case e.err != nil:
		reason = "error"
	default:
		m.e2e.Observe(s.last.Sub(s.arrived).Seconds())
	}
	m.ended.WithLabelValues(reason).Inc()
}

// stepTimes is how long the parts of a step took.
type stepTimes struct{ schedule, decode, sample, post time.Duration }

func (m *metrics) step(t stepTimes, size stepSize) {
	m.schedule.Add(t.schedule.Seconds())
	m.decode.Add(t.decode.Seconds())
	m.sample.Add(t.sample.Seconds())
	m.post.Add(t.post.Seconds())
	m.stepDuration.Observe((t.schedule + t.decode + t.sample + t.post).Seconds())
	m.stepRows.Observe(float64(size.rows))
	m.computedTokens.Add(float64(size.rows))
}
