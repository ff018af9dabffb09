package libllama

// CGO_CPPFLAGS and CGO_LDFLAGS name llama.cpp's header and library folders;
// scripts/build-llama prints them. Its LLAMA_BUILD_ID makes Go notice that the
// libraries have changed.

// #cgo CXXFLAGS: -std=c++17 -O2 -fvisibility=hidden -Wall -Wextra
// #include "shim.h"
import "C"
