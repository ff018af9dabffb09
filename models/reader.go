package models

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// errInvalid is wrapped by the errors of files whose content makes no sense.
var errInvalid = errors.New("damaged GGUF file")

// A reader takes a GGUF header's little-endian fields off a file of known
// size. After the first failure it keeps the error and returns zeros, so that
// callers check once per group of fields.
type reader struct {
	r         *bufio.Reader
	pos, size uint64
	err       error
}

func newReader(r io.Reader, size int64) *reader {
	return &reader{r: bufio.NewReaderSize(r, 1<<16), size: uint64(size)}
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", errInvalid, fmt.Sprintf(format, args...))
	}
}

// take tells whether n more bytes can be read, and counts them as read.
func (r *reader) take(n uint64) bool {
	if r.err != nil {
		return false
	}
	if n > r.size-r.pos {
		r.err = fmt.Errorf("file is cut short: has %d bytes, its header goes on beyond", r.size)
		return false
	}
	if r.pos+n > maxHeader {
		r.fail("its header is larger than 1 GiB")
		return false
	}
	r.pos += n
	return true
}

// number reads n bytes, at most 8, as an unsigned number.
func (r *reader) number(n int) uint64 {
	var b [8]byte
	if !r.take(uint64(n)) {
		return 0
	}
	if _, err := io.ReadFull(r.r, b[:n]); err != nil {
		r.err = err
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) u32() uint32 { return uint32(r.number(4)) }
func (r *reader) u64() uint64 { return r.number(8) }

// skip passes over n bytes.
func (r *reader) skip(n uint64) {
	if !r.take(n) {
		return
	}
	_, r.err = r.r.Discard(int(n)) // at most maxHeader
}

// text reads a length and a string. Of one longer than limit it returns the
// beginning and reads over the rest.
func (r *reader) text(limit uint64) string {
	n := r.u64()
	kept := min(n, limit)
	if !r.take(kept) {
		return ""
	}
	b := make([]byte, kept)
	if _, err := io.ReadFull(r.r, b); err != nil {
		r.err = err
	}
	r.skip(n - kept)
	return string(b)
}
