//go:build dl

package libllama

// #cgo LDFLAGS: -lmtmd -lllama-common -lllama -lggml -lggml-base -lstdc++ -lm -ldl -lpthread -Wl,-rpath,$ORIGIN:$ORIGIN/../lib
import "C"

// dynamic tells that compute backends are files that must be loaded.
const dynamic = true
