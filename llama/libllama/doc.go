// Package libllama implements the interfaces of package llama over llama.cpp,
// which is linked into the process. It is the only package with import "C".
//
// Open gives the process's one Backend; everything else comes from it:
//
//	Backend ── Load ──▶ Model ── NewContext ──▶ Context
//	                          └─ NewChat ─────▶ Chat
//
// A Model and its Chat are for any number of goroutines, a Context for one at
// a time. Children are closed before what they came from: Close of a Backend
// or Model that is still in use returns an error and closes nothing.
//
// Go calls llama.cpp through shim.cpp alone: C functions named b3_…, which take
// flat arrays and return a code. Each body is wrapped in guard (shim_guard.h),
// so no C++ exception reaches Go. What llama.cpp would answer with an abort of
// the process is checked in Go before the call. llama.cpp's log lines arrive in
// b3GoLog (callback.go) and go on to slog.
//
// The build tag dl links llama.cpp's shared libraries and loads the compute
// backends from files at run time; without it everything is linked statically.
package libllama
