// What the shim's C++ files share: turning exceptions into codes.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "shim.h"

namespace b3 {

// set_error copies a message, cut to what fits at the border of a UTF-8 character.
inline void set_error(b3_error * err, const std::string & text) noexcept {
    if (err == nullptr) {
        return;
    }
    size_t n = std::min(text.size(), sizeof(err->text) - 1);
    while (n > 0 && n < text.size() && (text[n] & 0xC0) == 0x80) {
        n--;
    }
    std::memcpy(err->text, text.data(), n);
    err->text[n] = 0;
}

// guard runs body and turns whatever it throws into B3_EXCEPTION and a message.
// The body of every b3_ function that can throw stands in one.
template <typename F> int guard(b3_error * err, F && body) noexcept {
    try {
        return body();
    } catch (const std::exception & e) {
        set_error(err, e.what());
    } catch (...) {
        set_error(err, "unknown C++ exception");
    }
    return B3_EXCEPTION;
}

}  // namespace b3
