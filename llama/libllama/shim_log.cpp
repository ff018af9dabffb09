// llama.cpp's log: joins fragments into lines, keeps the errors of failing calls,
// and hands lines to Go.

#include "shim_log.h"

#include <atomic>
#include <cctype>
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
    if (line_level == B3_LOG_ERROR && capture != nullptr) {
        capture->add(line);
    }
    const int level = quiet > 0 && line_level == B3_LOG_WARN ? B3_LOG_DEBUG : line_level;
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

// trim cuts white space at both ends and the "function: " that llama.cpp's lines begin with.
std::string trim(const std::string & s) {
    size_t begin = 0, end = s.size();
    while (end > begin && isspace((unsigned char) s[end - 1])) {
        end--;
    }
    while (begin < end && (isalnum((unsigned char) s[begin]) || s[begin] == '_' || s[begin] == '~')) {
        begin++;
    }
    if (begin == 0 || begin + 1 >= end || s[begin] != ':' || s[begin + 1] != ' ') {
        begin = 0;
    } else {
        begin += 2;
    }
    while (begin < end && isspace((unsigned char) s[begin])) {
        begin++;
    }
    return s.substr(begin, end - begin);
}

}  // namespace

namespace b3 {

LogCapture::LogCapture() : outer(capture) { capture = this; }
LogCapture::~LogCapture() { capture = outer; }

void LogCapture::add(const std::string & s) {
    const std::string t = trim(s);
    if (t.empty() || t == "failed to load model") {
        return;  // adds nothing to the line before
    }
    if (!text.empty()) {
        text += "; ";
    }
    text += t;
}

std::string LogCapture::reason(const char * otherwise) const { return text.empty() ? otherwise : text; }

LogQuiet::LogQuiet() { quiet++; }
LogQuiet::~LogQuiet() { quiet--; }

}  // namespace b3

void b3_log_start(int level) {
    min_level = level;
    llama_log_set(on_log, nullptr);
}
