package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// machine is a pretended one, whose steps cost what a costModel can express.
func machine(s stepSize) time.Duration {
	return 2*time.Millisecond + time.Duration(s.rows)*100*time.Microsecond +
		time.Duration(s.outputs)*300*time.Microsecond + time.Duration(s.rows*s.cells)*50*time.Nanosecond
}

func off(got, want time.Duration) float64 { return got.Seconds()/want.Seconds() - 1 }

func TestCostModelLearns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m costModel
	noisy := func(s stepSize) {
		m.observe(s, time.Duration(float64(machine(s))*(0.95+0.1*random.Float64())))
	}
	for range 200 {
		outputs := 1 + random.IntN(32)
		noisy(stepSize{rows: outputs + random.IntN(500), outputs: outputs, cells: random.IntN(30000)})
		noisy(stepSize{rows: outputs, outputs: outputs, cells: random.IntN(30000)})
	}
	m.settle()
	// An hour of nothing but decoding must not make it forget what prompts cost.
	for range 5000 {
		n := 1 + random.IntN(32)
		noisy(stepSize{rows: n, outputs: n, cells: 2000 + random.IntN(1000)})
	}
	for _, s := range []stepSize{{1, 1, 100}, {32, 32, 2000}, {256, 0, 0}, {512, 8, 20000}} {
		if e := off(m.predict(s), machine(s)); e < -0.25 || e > 0.25 {
			t.Errorf("%+v: predicted %v, takes %v", s, m.predict(s), machine(s))
		}
	}
}

func TestCostModelFollowsChange(t *testing.T) {
	var m costModel
	s := stepSize{rows: 8, outputs: 8, cells: 1000}
	for range 100 {
		m.observe(s, machine(s))
	}
	m.settle()
	for range 2000 {
		m.observe(s, 2*machine(s))
	}
	if e := off(m.predict(s), 2*machine(s)); e < -0.2 || e > 0.2 {
		t.Errorf("predicted %v after the machine became half as fast, takes %v", m.predict(s), 2*machine(s))
	}
}

func TestCostModelPrefillRows(t *testing.T) {
	m := costModel{coef: [4]float64{0.002, 0.0001, 0.0003, 0}}
	decode := stepSize{rows: 10, outputs: 10}
	// 20 ms - 2 ms - 10 × 0.4 ms leaves 14 ms.
	if got := m.prefillRows(decode, 20*time.Millisecond); got < 139 || got > 140 {
		t.Errorf("got %d rows, want 140", got)
	}
	if got := m.prefillRows(decode, 5*time.Millisecond); got != 0 {
		t.Errorf("got %d rows without time, want 0", got)
	}
	if got := new(costModel).prefillRows(decode, time.Millisecond); got != 1<<20 {
		t.Errorf("got %d rows without measurements, want no limit", got)
	}
}

func TestCostModelAllocatesNothing(t *testing.T) {
	var m costModel
	s := stepSize{rows: 8, outputs: 8, cells: 1000}
	if n := testing.AllocsPerRun(100, func() { m.observe(s, time.Millisecond); m.prefillRows(s, time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
