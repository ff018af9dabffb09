// llama.cpp's Jinja engine, as chat.h brings it.
#pragma once

// Its classes are shared with the library, whose typeinfo they must match.
#pragma GCC visibility push(default)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "jinja/lexer.h"
#include "jinja/runtime.h"
#include "jinja/value.h"
#pragma GCC diagnostic pop
#pragma GCC visibility pop
