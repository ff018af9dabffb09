// llama.cpp's log: joins fragments into lines, keeps the errors of failing calls,
// and hands lines to Go.

#include "shim_log.h"

#include <atomic>
#include <cctype>
#include <cstring>
#include <string>

#include "llama.h"
#include "shim.h"

// Exported by callback.go.
extern "C" void b3GoLog(int level, char * text, size_t len);

namespace {

std::atomic<int> min_level{B3_LOG_DEBUG};

thread_local std::string      line;        // begun, without its end
thread_local int              line_level;  // level of line, which continuations share
thread_local int              quiet;       // LogQuiets alive
thread_local b3::LogCapture * capture;     // the innermost alive

void emit() {
    int level = quiet > 0 && line_level == B3_LOG_WARN ? B3_LOG_DEBUG : line_level;
    if (line_level == B3_LOG_ERROR && capture != nullptr) {
        capture->add(line);
        level = B3_LOG_DEBUG;  // the caller says it, in its error
    }
    if (level >= min_level.load(std::memory_order_relaxed) && !line.empty()) {
        b3GoLog(level, line.data(), line.size());
    }
    line.clear();
}

void on_log(ggml_log_level level, const char * text, void *) noexcept {
    try {
        if (level != GGML_LOG_LEVEL_CONT) {
            if (!line.empty()) {
                emit();
            }
            line_level = level;
        }
        for (; *text != 0; text++) {
            if (*text != '\n') {
                line += *text;
            } else {
                emit();
            }
        }
    } catch (...) {
        line.clear();  // no memory for a log line: drop it
    }
}

// skip is where s goes on behind prefix, or from if it does not stand there.
size_t skip(const std::string & s, size_t from, const char * prefix) {
    const size_t n = strlen(prefix);
    return s.compare(from, n, prefix) == 0 ? from + n : from;
}

// trim cuts white space at the end and what llama.cpp's lines begin with: the
// name of the function, and what it was doing.
std::string trim(const std::string & s) {
    size_t end = s.size();
    while (end > 0 && isspace((unsigned char) s[end - 1])) {
        end--;
    }
    size_t begin = 0;
    while (begin < end && (isalnum((unsigned char) s[begin]) || s[begin] == '_' || s[begin] == '~')) {
        begin++;
    }
    begin = begin > 0 ? skip(s, begin, ": ") : 0;
    if (begin > 0 && s[begin - 1] != ' ') {
        begin = 0;  // a word, but no name
    }
    begin = skip(s, begin, "error loading model: ");
    return s.substr(begin, end - begin);
}

}  // namespace

namespace b3 {

LogCapture::LogCapture() : outer(capture) { capture = this; }
LogCapture::~LogCapture() { capture = outer; }

void LogCapture::add(const std::string & s) {
    if (text.empty()) {
        text = trim(s);
    }
}

std::string LogCapture::reason(const char * otherwise) const { return text.empty() ? otherwise : text; }

LogQuiet::LogQuiet() { quiet++; }
LogQuiet::~LogQuiet() { quiet--; }

}  // namespace b3

void b3_log_start(int level) {
    min_level = level;
    llama_log_set(on_log, nullptr);
}
