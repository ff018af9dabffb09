package libllama

// #include "shim.h"
import "C"

import "unsafe"

// ptr is the address of a slice's memory, nil for an empty one.
func ptr[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// cstring reads a text by a function that copies at most n bytes of it, the
// terminating 0 included, and returns its full length or -1.
func cstring(read func(buf *C.char, n C.size_t) C.int32_t) string {
	buf := make([]byte, 256)
	for {
		n := int(read((*C.char)(ptr(buf)), C.size_t(len(buf))))
		if n < 0 {
			return ""
		}
		if n < len(buf) {
			return string(buf[:n])
		}
		buf = make([]byte, n+1)
	}
}
