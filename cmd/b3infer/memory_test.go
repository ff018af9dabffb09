package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/models"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// plain has two layers of 128 numbers a token, hybrid one of them and one with
// a recurrent state of 1 MiB.
var (
	plain = models.Facts{
		Files: []string{"plain.gguf"}, WeightBytes: 300 * mib, Context: 8192, Vocabulary: 1000, Embedding: 64, FeedForward: 128,
		Layers: []models.Layer{{Key: 64, Value: 64}, {Key: 64, Value: 64}},
	}
	hybrid = models.Facts{
		Files: []string{"hybrid.gguf"}, WeightBytes: 300 * mib, Context: 8192, Vocabulary: 1000, Embedding: 64, FeedForward: 128,
		Layers: []models.Layer{{Key: 64, Value: 64}, {State: mib / 4}},
	}
)

func TestEstimate(t *testing.T) {
	const (
		logits  = 32 * 1000 * 4
		compute = logits + 512*4*(6*64+3*128)
		base    = processBytes + logits
	)
	usual := sizes{parallel: 32, batch: 2048, ubatch: 512, kv: llama.KVF16, gpuLayers: -1}
	with := func(change func(*sizes)) sizes {
		s := usual
		change(&s)
		return s
	}
	windowed := plain
	windowed.Window = 512
	tests := []struct {
		name  string
		facts models.Facts
		sizes sizes
		gpu   bool
		want  needs
	}{
		{"on the CPU", plain, usual, false, needs{host: demand{base + 300*mib + compute, cellBooks + 512 + 1024}}},
		{"cache of q8_0", plain, with(func(s *sizes) { s.kv = llama.KVQ8_0 }), false,
			needs{host: demand{base + 300*mib + compute, cellBooks + 4*68 + 1024}}},
		{"small batch", plain, with(func(s *sizes) { s.batch = 8 }), false,
			needs{host: demand{processBytes + 300*mib + 2*8*1000*4 + 8*4*(6*64+3*128), cellBooks + 512 + 16}}},
		{"windows", windowed, usual, false, needs{host: demand{base + 300*mib + compute, cellBooks + 512 + 2048}}},
		{"recurrent states", hybrid, usual, false, needs{host: demand{base + 300*mib + 40*mib + compute, cellBooks + 256 + 1024}}},
		{"on the GPU", plain, usual, true,
			needs{host: demand{base, cellBooks}, gpu: demand{300*mib + compute, 512 + 1024}}},
		{"more layers than there are", plain, with(func(s *sizes) { s.gpuLayers = 99 }), true,
			needs{host: demand{base, cellBooks}, gpu: demand{300*mib + compute, 512 + 1024}}},
		{"one layer on the GPU", plain, with(func(s *sizes) { s.gpuLayers = 1 }), true, needs{
			host: demand{base + 200*mib + compute, cellBooks + 256 + 1024},
			gpu:  demand{100*mib + compute, 256 + 1024},
		}},
		{"GPU left alone", plain, with(func(s *sizes) { s.gpuLayers = 0 }), true,
			needs{host: demand{base + 300*mib + compute, cellBooks + 512 + 1024}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := estimate(test.facts, test.sizes, test.gpu)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(needs{}, demand{})); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := estimate(plain, with(func(s *sizes) { s.kv = "q2" }), false); err == nil {
		t.Error("cache of q2: got no error")
	}
}

func TestChooseContext(t *testing.T) {
	onCPU := needs{host: demand{fixed: gib, perCell: mib / 256}} // 256 cells take 1 MiB
	onGPU := needs{host: demand{fixed: mib}, gpu: demand{fixed: gib, perCell: mib / 256}}
	long := models.Facts{Files: []string{"/m/long.gguf"}, Context: 131072}
	short := models.Facts{Files: []string{"/m/short.gguf"}, Context: 2048}
	silent := models.Facts{Files: []string{"/m/silent.gguf"}}
	tests := []struct {
		name  string
		facts models.Facts
		needs needs
		have  supply
		asked int
		want  int
		err   string
	}{
		{"training context", short, onCPU, supply{host: 8 * gib}, 0, 2048, ""},
		{"most on a CPU", long, onCPU, supply{host: 8 * gib}, 0, 32768, ""},
		{"no bound on a GPU", long, onGPU, supply{host: 8 * gib, gpu: 8 * gib}, 0, 131072, ""},
		{"nothing known of the memory", long, onCPU, supply{}, 0, 32768, ""},
		{"nothing known of the model", silent, onCPU, supply{host: 8 * gib}, 0, minContext, ""},
		{"what fits with some to spare", long, onCPU, supply{host: gib + 128*mib}, 0, 256 * 12, ""},
		{"what fits on the GPU", long, onGPU, supply{host: 8 * gib, gpu: gib + 200*mib}, 0, 256 * 77, ""},
		{"at least the smallest", long, onCPU, supply{host: gib + 3*mib}, 0, minContext, ""},
		{"asked", long, onCPU, supply{host: gib + 400*mib}, 100000, 100000, ""},
		{"asked for all of it", long, onCPU, supply{host: gib + 4*mib}, 1024, 1024, ""},
		{"asked for too much", long, onCPU, supply{host: gib + 100*mib}, 100000, 0,
			"too little memory: a context of 100000 tokens needs 1.38 GiB, and 1.10 GiB are free; the largest that fits is --ctx 25600"},
		{"asked for too much of a GPU", long, onGPU, supply{host: 8 * gib, gpu: gib + 100*mib}, 100000, 0,
			"too little memory: a context of 100000 tokens needs 1.38 GiB of GPU memory, and 1.10 GiB are free " +
				"(--gpu-layers keeps a part of the model off the GPU); the largest that fits is --ctx 25600"},
		{"too large a model", long, onCPU, supply{host: 700 * mib}, 0, 0,
			"too little memory: long needs 1.00 GiB, and 700.0 MiB are free, even with a context of 512 tokens"},
		{"too large a model, asked", long, onCPU, supply{host: 700 * mib}, 4096, 0,
			"too little memory: long needs 1.00 GiB, and 700.0 MiB are free, even with a context of 512 tokens"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := chooseContext(test.facts, test.needs, test.have, test.asked)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != test.want || text != test.err {
				t.Errorf("got %d, %q\nwant %d, %q", got, text, test.want, test.err)
			}
		})
	}
}

func TestDemandCells(t *testing.T) {
	d := demand{fixed: 1000, perCell: 2}
	for have, want := range map[uint64]int{0: 0, 999: 0, 1000: 0, 1511: 0, 1512: 256, 2023: 256, 2024: 512, 1 << 62: 1<<31 - 256} {
		if got := d.cells(have); got != want {
			t.Errorf("%d bytes: got %d, want %d", have, got, want)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[uint64]string{0: "0.0 KiB", 1536: "1.5 KiB", 96 * mib: "96.0 MiB", 3 * gib / 2: "1.50 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
