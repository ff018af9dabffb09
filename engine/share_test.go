package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestShare(t *testing.T) {
	tests := []struct {
		name     string
		rows     int
		prefills []prefill
		single   bool
		step     uint64
		want     []int
	}{
		{"nothing to do", 100, nil, false, 1, []int{}},
		{"no rows", 0, []prefill{{10, 10, 10, 1}}, false, 1, []int{0}},
		{"one takes all", 100, []prefill{{500, 500, 500, 1}}, false, 1, []int{100}},
		{"all fit", 100, []prefill{{10, 10, 10, 1}, {20, 20, 20, 2}}, false, 1, []int{10, 20}},
		{"oldest gets a quarter, shortest the rest", 100, []prefill{{500, 500, 500, 1}, {90, 90, 90, 2}, {60, 60, 60, 3}}, false, 1, []int{25, 15, 60}},
		{"oldest is the shortest", 100, []prefill{{500, 500, 500, 2}, {60, 60, 60, 1}}, false, 1, []int{40, 60}},
		{"whom a short one waits for", 100, []prefill{{500, 500, 500, 1}, {400, 30, 50, 2}, {60, 60, 60, 3}}, false, 1, []int{25, 30, 45}},
		{"and the rest of it", 200, []prefill{{500, 500, 500, 1}, {90, 30, 50, 2}, {60, 60, 60, 3}}, false, 1, []int{50, 90, 60}},
		{"single: shortest", 100, []prefill{{500, 500, 500, 1}, {60, 60, 60, 2}}, true, 1, []int{0, 60}},
		{"single: oldest in turn", 100, []prefill{{500, 500, 500, 1}, {60, 60, 60, 2}}, true, 8, []int{100, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, share(tt.rows, tt.prefills, tt.single, tt.step, []int{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// No row is lost or given twice, and the oldest always advances.
func TestShareProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "prefills")
		prefills := make([]prefill, n)
		sum, oldest := 0, 0
		for i := range prefills {
			pending := rapid.IntRange(1, 300).Draw(t, "pending")
			prefills[i] = prefill{
				pending: pending, wanted: rapid.IntRange(1, pending).Draw(t, "wanted"),
				due: rapid.IntRange(1, 400).Draw(t, "due"), since: uint64(i),
			}
			sum += prefills[i].pending
		}
		rows := rapid.IntRange(1, 500).Draw(t, "rows")
		got := share(rows, prefills, false, 1, nil)
		given := 0
		for i, g := range got {
			if g < 0 || g > prefills[i].pending {
				t.Fatalf("prefill %d of %d rows got %d", i, prefills[i].pending, g)
			}
			given += g
		}
		if given != min(rows, sum) {
			t.Errorf("gave %d rows, want %d", given, min(rows, sum))
		}
		if got[oldest] == 0 {
			t.Error("the oldest does not advance")
		}
	})
}
