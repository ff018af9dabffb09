//go:build !dl

package libllama

// #cgo LDFLAGS: -lmtmd -lllama-common -lllama-common-base -lvendor-hash -lllama -lggml -lggml-cpu -lggml-base -lstdc++ -lm -ldl -lpthread -l:libgomp.a
import "C"

// dynamic tells that compute backends are files that must be loaded. In a
// static program loading one would bring a second ggml with its own registry.
const dynamic = false
