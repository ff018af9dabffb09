package main

import (
	"fmt"
	"math"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/models"
)

// Contexts are multiples of contextUnit, as llama.cpp rounds them, and no
// default is smaller than minContext or, on a CPU, larger than maxCPUContext.
const (
	contextUnit   = 256
	minContext    = 512
	maxCPUContext = 32768
)

// A demand is what a context of n cells takes: fixed + n × perCell bytes.
type demand struct{ fixed, perCell uint64 }

func (d demand) at(cells int) uint64 { return d.fixed + uint64(cells)*d.perCell }

// cells is the largest context, a multiple of contextUnit, that fits into so
// many bytes.
func (d demand) cells(have uint64) int {
	if have < d.fixed {
		return 0
	}
	if d.perCell == 0 {
		return math.MaxInt32 / contextUnit * contextUnit
	}
	n := min((have-d.fixed)/d.perCell, math.MaxInt32)
	return int(n) / contextUnit * contextUnit
}

// needs are the demands on the computer's memory and the GPU's.
type needs struct{ host, gpu demand }

// supply is the memory that is free; 0 when that is not known.
type supply struct{ host, gpu uint64 }

// sizes are the settings that memory depends on.
type sizes struct {
	parallel, batch, ubatch int
	kv                      llama.KVType
	gpuLayers               int // negative: all
}

// processBytes is what the program takes beside weights, caches and buffers:
// code, tables of a vocabulary of 250,000 tokens, the Go heap under load.
const processBytes = 192 << 20

// cellBooks is what llama.cpp and the engine note about each cell.
const cellBooks = 128

// estimate works out what a model takes. It is meant to be a little too
// large: weights are counted as if all had to stay in memory.
func estimate(f models.Facts, s sizes, hasGPU bool) (needs, error) {
	perCell, ok := f.CellBytes(string(s.kv))
	if !ok {
		return needs{}, fmt.Errorf("unknown KV cache type %q: f16, q8_0 and q4_0 are known", s.kv)
	}
	recurrent := f.RecurrentBytes()
	sequences := engine.Sequences(s.parallel, recurrent > 0)
	logits := uint64(min(s.parallel, s.batch)) * uint64(f.Vocabulary) * 4
	caches := demand{uint64(sequences) * recurrent, perCell}
	compute := computeDemand(f, s, logits)
	n := needs{host: demand{fixed: processBytes + logits, perCell: cellBooks}}
	if !hasGPU || s.gpuLayers == 0 {
		n.host.add(demand{fixed: f.WeightBytes}, 1, 1)
		n.host.add(caches, 1, 1)
		n.host.add(compute, 1, 1)
		return n, nil
	}
	layers := uint64(len(f.Layers))
	offloaded := layers + 1 // the output layer counts as one
	if s.gpuLayers > 0 {
		offloaded = min(uint64(s.gpuLayers), offloaded)
	}
	weights := demand{fixed: f.WeightBytes}
	n.gpu.add(weights, offloaded, layers+1)
	n.host.add(weights, layers+1-offloaded, layers+1)
	n.gpu.add(caches, min(offloaded, layers), max(layers, 1))
	n.host.add(caches, layers-min(offloaded, layers), max(layers, 1))
	n.gpu.add(compute, 1, 1)
	if offloaded <= layers {
		n.host.add(compute, 1, 1)
	}
	return n, nil
}

// computeDemand is llama.cpp's compute buffer: the logits of a step's outputs
// or, where that is more, what is alive inside a layer, and the attention mask
// of 2 bytes per row and cell, one more with sliding windows. llama.cpp's own
// figures for a plain, a hybrid and a quantized model are below it.
func computeDemand(f models.Facts, s sizes, logits uint64) demand {
	rows := uint64(min(s.ubatch, s.batch))
	inner := rows * 4 * (6*uint64(f.Embedding) + 3*uint64(f.FeedForward))
	masks := uint64(1)
	if f.Window > 0 {
		masks = 2
	}
	return demand{fixed: logits + inner, perCell: rows * 2 * masks}
}

// add adds a part of what another demand is.
func (d *demand) add(other demand, part, of uint64) {
	d.fixed += share(other.fixed, part, of)
	d.perCell += share(other.perCell, part, of)
}

// share is n × part ÷ of, rounded up. Sizes of files are far below 2⁶⁴ ÷ layers.
func share(n, part, of uint64) uint64 { return (n*part + of - 1) / of }

// largest is the largest context that fits into a share of what is free.
func (n needs) largest(have supply, percent uint64) int {
	cells := math.MaxInt32 / contextUnit * contextUnit
	if have.host > 0 {
		cells = min(cells, n.host.cells(percentOf(have.host, percent)))
	}
	if have.gpu > 0 {
		cells = min(cells, n.gpu.cells(percentOf(have.gpu, percent)))
	}
	return cells
}

// percentOf is n × percent ÷ 100, without overflow.
func percentOf(n, percent uint64) uint64 { return n/100*percent + n%100*percent/100 }

// spare is the share of the free memory, in percent, that a context chosen by
// default may fill: others want some too.
const spare = 90

// chooseContext is the number of cells to serve a model with: what the user
// asked for, or else what the model was trained for, as far as it fits. The
// error says in one line what is needed, what is there, and what would do.
func chooseContext(f models.Facts, n needs, have supply, asked int) (int, error) {
	fits := n.largest(have, 100)
	switch {
	case asked > 0 && asked <= fits:
		return asked, nil
	case asked > 0 && fits >= minContext:
		return 0, fmt.Errorf("too little memory: a context of %d tokens needs %s; the largest that fits is --ctx %d",
			asked, n.shortage(have, asked), fits)
	case fits < minContext:
		return 0, fmt.Errorf("too little memory: %s needs %s, even with a context of %d tokens",
			models.ID(f.Files[0]), n.shortage(have, minContext), minContext)
	}
	want := f.Context
	if want <= 0 {
		want = minContext
	}
	if n.gpu == (demand{}) {
		want = min(want, maxCPUContext)
	}
	if want <= minContext {
		return want, nil
	}
	return max(minContext, min(want, n.largest(have, spare))), nil
}

// shortage names the memory that is too small for a context.
func (n needs) shortage(have supply, cells int) string {
	if have.gpu > 0 && n.gpu.at(cells) > have.gpu {
		return fmt.Sprintf("%s of GPU memory, and %s are free (--gpu-layers keeps a part of the model off the GPU)",
			bytesText(n.gpu.at(cells)), bytesText(have.gpu))
	}
	return fmt.Sprintf("%s, and %s are free", bytesText(n.host.at(cells)), bytesText(have.host))
}

// bytesText is a size for people, in binary units.
func bytesText(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
}

// deviceMemory sums up what is free on the GPUs.
func deviceMemory(devices []llama.Device) (free uint64, hasGPU bool) {
	for _, d := range devices {
		if d.GPU {
			free += d.Free
			hasGPU = true
		}
	}
	return free, hasGPU
}
