// Drives the core of the shim for the sanitizers: first what needs no model,
// then, with a model's path as argument, its whole life.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "shim.h"

// What callback.go exports.
static size_t      logged;
static std::string last_line;
extern "C" void b3GoLog(int, char * text, size_t len) {
    logged++;
    last_line.assign(text, len);
}
extern "C" int b3GoProgress(uintptr_t limit, float done) { return done <= (float) limit / 100; }

static b3_error err;

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "line %d: %s: %s (%s)\n", __LINE__, #condition, err.text, last_line.c_str()); \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

static void without_model() {
    b3_log_start(B3_LOG_DEBUG);
    CHECK(b3_backend_init(nullptr, &err) == B3_OK);
    CHECK(b3_backend_devices("CPU") == 1 && b3_backend_devices("none") == -1);
    for (int32_t i = 0; i < b3_device_count(); i++) {
        b3_device device;
        b3_device_get(i, &device);
        CHECK(strlen(device.name) > 0 && strlen(device.description) > 0);
    }
    CHECK(strlen(b3_version()) > 0 && strlen(b3_commit()) > 0);
    CHECK(b3_backend_load("/nowhere/libggml-none.so", &err) == B3_FAILED);

    llama_model * model = nullptr;
    CHECK(b3_model_load("/nowhere/model.gguf", 0, 0, 100, &model, nullptr) == B3_FAILED);
    CHECK(b3_model_load("/nowhere/model.gguf", 0, 0, 100, &model, &err) == B3_FAILED && strlen(err.text) > 0);
    const std::string longest = "/nowhere/" + std::string(3000, 'x');
    CHECK(b3_model_load(longest.c_str(), 0, 0, 100, &model, &err) == B3_FAILED && strlen(err.text) < sizeof err.text);
    CHECK(logged > 0);
    b3_context_free(nullptr);
}

static void vocabulary(llama_model * model) {
    int32_t tokens = 0;
    size_t  bytes  = 0;
    CHECK(b3_vocab_size(model, &tokens, &bytes, &err) == B3_OK && tokens > 0);
    std::vector<char>     text(bytes);
    std::vector<uint32_t> offsets(tokens + 1);
    std::vector<uint16_t> attr(tokens);
    std::vector<uint8_t>  eog(tokens);
    CHECK(b3_vocab_fill(model, text.data(), offsets.data(), attr.data(), eog.data(), &err) == B3_OK);
    CHECK(offsets[tokens] == bytes);
    b3_vocab_bos(model);
    b3_vocab_type(model);

    const std::string words = "The quick brown fox \xff\xe2\x96 jumps <|im_start|> over.";
    std::vector<int32_t> out(words.size());
    int32_t full = 0, cut = 0;
    CHECK(b3_tokenize(model, words.data(), (int32_t) words.size(), out.data(), (int32_t) out.size(), 1, &full, &err) == B3_OK && full > 3);
    CHECK(b3_tokenize(model, words.data(), (int32_t) words.size(), out.data(), 2, 1, &cut, &err) == B3_OK && cut == full);
    CHECK(b3_tokenize(model, words.data(), 0, nullptr, 0, 0, &cut, &err) == B3_OK && cut == 0);

    const std::string word(60'000, 'a');
    out.resize(word.size());
    CHECK(b3_tokenize(model, word.data(), (int32_t) word.size(), out.data(), (int32_t) out.size(), 0, &full, &err) == B3_OK && full > 3);

    char small[4];
    CHECK(b3_model_desc(model, small, sizeof small) > 0);
    CHECK(b3_model_meta(model, "general.architecture", small, sizeof small) > 0);
    CHECK(b3_model_meta(model, "none", small, sizeof small) == -1);
}

// A run is rows of one sequence.
struct run {
    std::vector<int32_t> token, pos, seq;
    std::vector<int8_t>  output;
    run(int32_t id, int32_t from, int32_t n) {
        for (int32_t i = 0; i < n; i++) {
            token.push_back(i % 100);
            pos.push_back(from + i);
            seq.push_back(id);
            output.push_back(i == n - 1);
        }
    }
    int decode(b3_context * c, bool non_causal = false) const {
        return b3_decode(c, (int32_t) seq.size(), token.data(), nullptr, pos.data(), seq.data(), output.data(), non_causal, &err);
    }
};

static void state(b3_context * c, int partial) {
    size_t size = 0, written = 0;
    CHECK(b3_state_size(c, 0, partial, &size, &err) == B3_OK);
    std::vector<uint8_t> saved(size);
    CHECK(b3_state_save(c, 0, partial, saved.data(), size, &written, &err) == B3_OK && written == size);
    CHECK(b3_state_save(c, 0, partial, saved.data(), size / 2, &written, &err) == B3_FAILED);
    CHECK(b3_state_load(c, 3, 0, saved.data(), size / 2, &err) == B3_FAILED);
    CHECK(b3_seq_remove(c, 3, -1, -1) == B3_OK);
    CHECK(b3_state_save(c, 0, partial, saved.data(), size, &written, &err) == B3_OK);
    CHECK(b3_state_load(c, partial ? 0 : 3, partial, saved.data(), size, &err) == B3_OK);
}

static void context(llama_model * model) {
    b3_model_info info;
    b3_model_get_info(model, &info);
    b3_context_params params = {};
    params.cells     = 256;
    params.sequences = 4;
    params.batch     = 200;
    params.ubatch    = 32;
    params.outputs   = 4;
    params.threads   = 2;
    params.kv_type   = 1;
    b3_context * c = nullptr;
    uint32_t limits[4];
    CHECK(b3_context_new(model, &params, &c, limits, &err) == B3_OK && limits[0] == 256 && limits[1] == 4);

    int32_t first, last;
    CHECK(run(0, 0, 100).decode(c) == 0);
    b3_seq_range(c, 0, &first, &last);
    CHECK(last == 99);
    CHECK(run(1, 0, 200).decode(c) == 1);
    CHECK(run(1, 5, 3).decode(c) == 0);
    CHECK(run(0, 50, 3).decode(c) == -1);
    CHECK(b3_seq_copy(c, 0, 2, -1, -1) == B3_OK);
    CHECK(run(2, 100, 32).decode(c, true) == 0);
    CHECK(run(0, 100, 1).decode(c) == 0);
    for (int partial : {0, 1}) {
        state(c, partial);
    }
    const int32_t positions = info.mrope ? 4 : 1;
    std::vector<float>   embd(2 * info.embedding, 0.25F);
    std::vector<int32_t> pos(2 * positions, 101), seq(2, 0);
    std::vector<int8_t>  output(2, 1);
    pos[1] = 102;
    CHECK(b3_decode(c, 2, nullptr, embd.data(), pos.data(), seq.data(), output.data(), 0, &err) == 0);
    for (int32_t s = 0; s < 4; s++) {
        CHECK(b3_seq_remove(c, s, -1, -1) == B3_OK);
    }
    b3_context_free(c);
    params.kv_type = 8;
    params.outputs = 200;
    CHECK(b3_context_new(model, &params, &c, limits, &err) == B3_OK);
    CHECK(run(0, 0, 40).decode(c) == 0);
    b3_context_free(c);
}

int main(int argc, char ** argv) {
    without_model();
    if (argc == 2) {
        llama_model * model = nullptr;
        CHECK(b3_model_load(argv[1], -1, 0, 10, &model, &err) == B3_FAILED && strcmp(err.text, "cancelled") == 0);
        CHECK(b3_model_load(argv[1], -1, 0, 100, &model, &err) == B3_OK);
        vocabulary(model);
        context(model);
        b3_model_free(model);
    }
    b3_log_start(B3_LOG_ERROR);
    puts("ok");
}
