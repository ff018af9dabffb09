// The log of llama.cpp as the rest of the shim sees it.
#pragma once

#include <string>

namespace b3 {

// A LogCapture keeps the first error line that llama.cpp logs on this thread
// while it lives: the only place where many of its functions say why they
// failed. Later lines say only what failed because of it.
class LogCapture {
  public:
    LogCapture();
    ~LogCapture();
    LogCapture(const LogCapture &) = delete;
    LogCapture & operator=(const LogCapture &) = delete;

    // reason is what llama.cpp said went wrong, without its function's name, or
    // otherwise.
    std::string reason(const char * otherwise) const;

    void add(const std::string & line);

  private:
    std::string  text;
    LogCapture * outer;
};

// While a LogQuiet lives, warnings of this thread count as details: the caller
// reports what they say by its result.
class LogQuiet {
  public:
    LogQuiet();
    ~LogQuiet();
    LogQuiet(const LogQuiet &) = delete;
    LogQuiet & operator=(const LogQuiet &) = delete;
};

}  // namespace b3
