package engine

import "time"

// stepSize describes a step's batch as far as its duration depends on it.
type stepSize struct {
	rows    int // rows in all
	outputs int // rows whose logits are computed and sampled
	cells   int // cells in use: attention costs rows × cells in the unified cache
}

// features are the terms that a step's duration is a sum of.
func (s stepSize) features() [4]float64 {
	return [4]float64{1, float64(s.rows), float64(s.outputs), float64(s.rows) * float64(s.cells) / 1000}
}

// A costModel predicts how long a step takes. It is a linear least-squares fit
// of measured steps with coefficients held at 0 or above; old steps fade.
// Each step is weighted by the inverse square of its duration, so that short and
// long ones count alike in relative error.
type costModel struct {
	recent, anchor normal
	coef           [4]float64 // seconds per feature
}

// normal holds the normal equations of a least-squares fit.
type normal struct {
	gram  [4][4]float64
	sums  [4]float64
	steps float64 // observations in it
}

// fade is how much of the past stays at each step: a half-life of about 350 steps.
const fade = 0.998

// observe learns from a finished step.
func (m *costModel) observe(s stepSize, took time.Duration) {
	x, y := s.features(), took.Seconds()
	if y <= 0 {
		return
	}
	// A step that took many times what was predicted was disturbed from outside
	// (another process, a sleeping machine); it may only count as a slow one.
	if p := m.predict(s).Seconds(); p > 0 && y > 4*p {
		y = 4 * p
	}
	weight := 1 / (y * y)
	for i := range x {
		for j := range x {
			m.recent.gram[i][j] = fade*m.recent.gram[i][j] + weight*x[i]*x[j]
		}
		m.recent.sums[i] = fade*m.recent.sums[i] + weight*x[i]*y
	}
	m.recent.steps = fade*m.recent.steps + 1
	m.solve()
}

// anchorSteps is how many observations the anchor counts for, against the 500
// that recent steps come to.
const anchorSteps = 10

// settle keeps what was observed so far for good, with little weight. Without
// this anchor an hour of steps that only decode would leave the cost of a prefill
// row undetermined.
func (m *costModel) settle() {
	m.anchor, m.recent = m.recent, normal{}
	scale := min(1, anchorSteps/max(m.anchor.steps, 1))
	for i := range m.anchor.gram {
		for j := range m.anchor.gram[i] {
			m.anchor.gram[i][j] *= scale
		}
		m.anchor.sums[i] *= scale
	}
}

// solve improves the coefficients by cyclic coordinate descent, which from the
// last solution needs a few rounds only.
func (m *costModel) solve() {
	for range 16 {
		for i := range m.coef {
			own := m.recent.gram[i][i] + m.anchor.gram[i][i]
			if own == 0 {
				continue
			}
			rest := m.recent.sums[i] + m.anchor.sums[i]
			for j := range m.coef {
				if j != i {
					rest -= (m.recent.gram[i][j] + m.anchor.gram[i][j]) * m.coef[j]
				}
			}
			m.coef[i] = max(0, rest/own)
		}
	}
}

// predict is the expected duration of a step.
func (m *costModel) predict(s stepSize) time.Duration {
	sum := 0.0
	for i, x := range s.features() {
		sum += m.coef[i] * x
	}
	return seconds(sum)
}

// prefillRows is how many rows without logits may join a step of this size so
// that it takes no longer than budget.
func (m *costModel) prefillRows(s stepSize, budget time.Duration) int {
	left := (budget - m.predict(s)).Seconds()
	per := m.perRow(s.cells)
	if left <= 0 {
		return 0
	}
	if per <= 0 {
		return 1 << 20 // nothing measured: the batch's size is the limit
	}
	return int(min(left/per, 1<<20))
}

// perRow is what one more row costs, in seconds.
func (m *costModel) perRow(cells int) float64 {
	return m.coef[1] + m.coef[3]*float64(cells)/1000
}

// perCell is what one more cell costs a step of so many rows, in seconds.
func (m *costModel) perCell(rows int) float64 { return m.coef[3] * float64(rows) / 1000 }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
