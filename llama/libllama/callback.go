package libllama

// #include <stddef.h>
// #include <stdint.h>
import "C"

import "runtime/cgo"

// b3GoLog gets one line of llama.cpp's log, on any thread.
//
//export b3GoLog
func b3GoLog(level C.int, text *C.char, n C.size_t) {
	lines.put(int(level), C.GoStringN(text, C.int(n)))
}

// b3GoProgress gets the share of a model that has been loaded, on the loading
// goroutine's thread, and tells whether to go on.
//
//export b3GoProgress
func b3GoProgress(handle C.uintptr_t, done C.float) C.int {
	progress := cgo.Handle(handle).Value().(func(float32) bool)
	if progress == nil || progress(float32(done)) {
		return 1
	}
	return 0
}
