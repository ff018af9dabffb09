// Drives the chat part of the shim for the sanitizers, with what stdin holds:
// records of a letter, sizes as 64-bit numbers, and as many bytes. T is a template
// (source, BOS, EOS), R a conversation for it (the texts of b3_template_render); a
// template that is refused has none.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "shim_chat.h"

// What callback.go exports.
extern "C" void b3GoLog(int, char *, size_t) {}

static std::string bytes(size_t n) {
    std::string s(n, '\0');
    if (fread(s.data(), 1, n, stdin) != n) {
        fprintf(stderr, "stdin ends early\n");
        exit(1);
    }
    return s;
}

// A record is sizes and texts that lie end to end.
struct record {
    std::vector<size_t> sizes;
    std::string         text;
    explicit record(size_t count) : sizes(count) {
        size_t total = 0;
        for (auto & size : sizes) {
            uint64_t n = 0;
            bytes(sizeof n).copy(reinterpret_cast<char *>(&n), sizeof n);
            total += size = n;
        }
        text = bytes(total);
    }
};

static void render(const b3_template * t, int32_t flags) {
    const record           in(B3_IN_COUNT);
    const b3_render_params params = {1772719629, 3600, flags & 1, flags >> 1 & 1};
    b3_rendering *         out = nullptr;
    b3_error               err;
    if (b3_template_render(t, in.text.data(), in.sizes.data(), &params, &out, &err) == B3_OK) {
        for (size_t i = 0; i < out->ranges; i++) {
            if (out->inputs[2 * i] >= out->inputs[2 * i + 1] || out->inputs[2 * i + 1] > out->sizes[0]) {
                fprintf(stderr, "range %zu is none\n", i);
                exit(1);
            }
        }
        b3_rendering_free(out);
    }
}

int main() {
    b3_template * t = nullptr;
    int           rendered = 0;
    for (int letter; (letter = getchar()) != EOF;) {
        if (letter == 'T') {
            const record in(3);
            b3_error     err;
            uint32_t     caps;
            b3_template_free(t);
            t = nullptr;
            b3_template_new(in.text.data(), in.sizes.data(), &t, &caps, &err);
        } else {
            render(t, rendered++);
        }
    }
    b3_template_free(t);
    printf("%d rendered\n", rendered);
}
