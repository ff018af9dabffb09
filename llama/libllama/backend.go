package libllama

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/b3os/b3infer/llama"
)

// Params configures the process's Backend.
type Params struct {
	// Log gets llama.cpp's log; nil means slog.Default.
	Log *slog.Logger
	// Threads is the most CPU threads that a context may use; 0 means one.
	Threads int
	// LibDir is the folder of the compute backends in a build with the tag dl;
	// empty means ../lib beside the program.
	LibDir string
}

// maxThreads is ggml's limit (GGML_MAX_N_THREADS), beyond which it aborts.
const maxThreads = 512

// Backend is llama.cpp in this process: its devices, its log and its CPU
// threads. The threads come from OpenMP, one team for each thread that computes
// (docs/threads.md).
type Backend struct {
	handle  *handle
	threads int
}

var _ llama.Backend = (*Backend)(nil)

// opened is the process's Backend, of which there is one at a time.
var opened struct {
	mu      sync.Mutex
	now     bool
	started bool // llama_backend_init was called
}

// Open initializes llama.cpp (llama_backend_init). One Backend may be open at a
// time.
func Open(p Params) (*Backend, error) {
	if p.Threads < 0 || p.Threads > maxThreads {
		return nil, fmt.Errorf("open llama.cpp: %d threads, of at most %d: %w", p.Threads, maxThreads, llama.ErrInvalid)
	}
	if p.Log == nil {
		p.Log = slog.Default()
	}
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if opened.now {
		return nil, fmt.Errorf("open llama.cpp: it is open already: %w", llama.ErrInvalid)
	}
	lines.setLogger(p.Log)
	startLogWriter()
	C.b3_log_start(C.int(ggmlLevel(p.Log)))
	if !opened.started {
		if err := start(p); err != nil {
			return nil, fmt.Errorf("open llama.cpp: %w", err)
		}
		opened.started = true
	}
	b := &Backend{threads: max(1, p.Threads)}
	b.handle, _ = open(b, "backend", nil) // fails only when a parent is closed
	opened.now = true
	return b, nil
}

// start loads the backends of a dl build and initializes llama.cpp.
func start(p Params) error {
	var cerr C.b3_error
	if !dynamic {
		if code := C.b3_backend_init(nil, &cerr); code != C.B3_OK {
			return shimError(code, &cerr)
		}
		return nil
	}
	dir := p.LibDir
	if dir == "" {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		dir = filepath.Join(filepath.Dir(program), "..", "lib")
	}
	cdir := C.CString(dir)
	defer C.free(unsafe.Pointer(cdir))
	if code := C.b3_backend_init(cdir, &cerr); code != C.B3_OK {
		return shimError(code, &cerr)
	}
	reportCUDA(dir, p.Log)
	return nil
}

// reportCUDA says why a CUDA backend that is there will not be used: llama.cpp
// loads backends silently.
func reportCUDA(dir string, log *slog.Logger) {
	file := filepath.Join(dir, "libggml-cuda.so")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return
	}
	name := C.CString("CUDA")
	defer C.free(unsafe.Pointer(name))
	switch C.b3_backend_devices(name) {
	case -1:
		cfile := C.CString(file)
		defer C.free(unsafe.Pointer(cfile))
		var cerr C.b3_error
		if code := C.b3_backend_load(cfile, &cerr); code != C.B3_OK {
			log.Warn("the CUDA backend does not load, models run on the CPU", "file", file, "err", shimError(code, &cerr))
		}
	case 0:
		log.Warn("the CUDA backend finds no GPU (or its driver is too old), models run on the CPU", "file", file)
	}
}

// Devices lists what models can run on (ggml_backend_dev_count).
func (b *Backend) Devices() []llama.Device {
	n := int(C.b3_device_count())
	devices := make([]llama.Device, 0, n)
	for i := range n {
		var d C.b3_device
		C.b3_device_get(C.int32_t(i), &d)
		devices = append(devices, llama.Device{
			Name:        C.GoString(d.name),
			Description: C.GoString(d.description),
			GPU:         d.gpu != 0,
			Free:        uint64(d.free),
			Total:       uint64(d.total),
		})
	}
	return devices
}

// Version is llama.cpp's version and commit (llama_version, llama_commit).
func (b *Backend) Version() string {
	return C.GoString(C.b3_version()) + " (" + C.GoString(C.b3_commit()) + ")"
}

// Close writes the rest of the log. It fails while models are open.
func (b *Backend) Close() error {
	return b.handle.close(func() {
		lines.flush()
		opened.mu.Lock()
		opened.now = false
		opened.mu.Unlock()
	})
}

// shimError is the error that a b3_ function reports by its code and text.
func shimError(code C.int, e *C.b3_error) error {
	text := C.GoString(&e.text[0])
	if code == C.B3_EXCEPTION {
		return fmt.Errorf("llama.cpp threw: %s", text)
	}
	return errors.New(text)
}
