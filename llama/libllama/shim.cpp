// Backends, models, vocabularies, contexts: llama.h behind plain C functions.

#include "shim.h"

#include <pthread.h>

#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "build-info.h"
#include "ggml-backend.h"
#include "llama.h"
#include "shim_guard.h"
#include "shim_log.h"

// Exported by callback.go.
extern "C" int b3GoProgress(uintptr_t handle, float done);

static_assert(sizeof(llama_token) == sizeof(int32_t) && sizeof(llama_pos) == sizeof(int32_t) && sizeof(llama_seq_id) == sizeof(int32_t),
              "flat arrays are passed on as they are");

//
// backends
//

int b3_backend_init(const char * dir, b3_error * err) {
    return b3::guard(err, [&] {
        if (dir != nullptr) {
            ggml_backend_load_all_from_path(dir);
            if (ggml_backend_reg_count() == 0) {
                b3::set_error(err, std::string(dir) + ": no compute backend (libggml-cpu-*.so) could be loaded from there");
                return (int) B3_FAILED;
            }
        }
        llama_backend_init();
        return (int) B3_OK;
    });
}

int b3_backend_load(const char * path, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        if (ggml_backend_load(path) == nullptr) {
            b3::set_error(err, errors.reason("ggml_backend_load failed"));
            return (int) B3_FAILED;
        }
        return (int) B3_OK;
    });
}

int32_t b3_backend_devices(const char * name) {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name(name);
    return reg == nullptr ? -1 : (int32_t) ggml_backend_reg_dev_count(reg);
}

int32_t b3_device_count(void) { return (int32_t) ggml_backend_dev_count(); }

void b3_device_get(int32_t i, b3_device * out) {
    ggml_backend_dev_t dev = ggml_backend_dev_get(i);
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(dev, &free, &total);
    const auto type = ggml_backend_dev_type(dev);
    out->name        = ggml_backend_dev_name(dev);
    out->description = ggml_backend_dev_description(dev);
    out->gpu         = type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
    out->free        = free;
    out->total       = total;
}

const char * b3_version(void) { return llama_version(); }
const char * b3_commit(void) { return llama_commit(); }

//
// models
//

int b3_model_load(const char * path, int32_t gpu_layers, int vocab_only, uintptr_t progress, llama_model ** out, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        llama_model_params params = llama_model_default_params();
        params.n_gpu_layers = gpu_layers;
        params.vocab_only   = vocab_only != 0;
        params.progress_callback = [](float done, void * handle) { return b3GoProgress((uintptr_t) handle, done) != 0; };
        params.progress_callback_user_data = (void *) progress;
        *out = llama_model_load_from_file(path, params);
        if (*out == nullptr) {
            b3::set_error(err, errors.reason("cancelled"));
            return (int) B3_FAILED;
        }
        return (int) B3_OK;
    });
}

void b3_model_free(llama_model * model) {
    b3::guard(nullptr, [&] {
        llama_model_free(model);
        return (int) B3_OK;
    });
}

void b3_model_get_info(const llama_model * model, b3_model_info * out) {
    const auto rope = llama_model_rope_type(model);
    out->parameters    = llama_model_n_params(model);
    out->size          = llama_model_size(model);
    out->train_context = llama_model_n_ctx_train(model);
    out->embedding     = llama_model_n_embd_inp(model);
    out->swa           = llama_model_n_swa(model);
    out->mrope         = rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE;
    out->recurrent     = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
    out->decoder       = llama_model_has_decoder(model);
    out->encoder       = llama_model_has_encoder(model);
}

int32_t b3_model_desc(const llama_model * model, char * buf, size_t size) { return llama_model_desc(model, buf, size); }

int32_t b3_model_meta(const llama_model * model, const char * key, char * buf, size_t size) {
    return llama_model_meta_val_str(model, key, buf, size);
}

//
// vocabulary
//

namespace {

// piece is the text of a token, special ones shown. buf is where it may stand.
int32_t piece(const llama_vocab * vocab, llama_token token, char * buf, size_t size) {
    return llama_token_to_piece(vocab, token, buf, (int32_t) std::min<size_t>(size, std::numeric_limits<int32_t>::max()), 0, true);
}

}  // namespace

int b3_vocab_size(const llama_model * model, int32_t * tokens, size_t * bytes, b3_error * err) {
    return b3::guard(err, [&] {
        const llama_vocab * vocab = llama_model_get_vocab(model);
        if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
            b3::set_error(err, "the model has no vocabulary");
            return (int) B3_FAILED;
        }
        *tokens = llama_vocab_n_tokens(vocab);
        *bytes  = 0;
        for (llama_token t = 0; t < *tokens; t++) {
            *bytes += std::abs(piece(vocab, t, nullptr, 0));
        }
        return (int) B3_OK;
    });
}

int b3_vocab_fill(const llama_model * model, char * text, uint32_t * offsets, uint16_t * attr, uint8_t * eog, b3_error * err) {
    return b3::guard(err, [&] {
        const llama_vocab * vocab = llama_model_get_vocab(model);
        const int32_t n = llama_vocab_n_tokens(vocab);
        uint32_t at = 0;
        for (llama_token t = 0; t < n; t++) {
            offsets[t] = at;
            at += std::max(0, piece(vocab, t, text + at, std::numeric_limits<int32_t>::max()));
            attr[t] = (uint16_t) llama_vocab_get_attr(vocab, t);
            eog[t]  = llama_vocab_is_eog(vocab, t);
        }
        offsets[n] = at;
        return (int) B3_OK;
    });
}

int32_t b3_vocab_type(const llama_model * model) { return llama_vocab_type(llama_model_get_vocab(model)); }

int32_t b3_vocab_bos(const llama_model * model) {
    const llama_vocab * vocab = llama_model_get_vocab(model);
    return llama_vocab_get_add_bos(vocab) ? llama_vocab_bos(vocab) : LLAMA_TOKEN_NULL;
}

// Many BPE tokenizers split text by std::regex, which calls itself for each character
// that it matches and takes some 320 bytes of stack for it: a word of 26 KB overflows
// 8 MB. So long texts get a stack of their own, several times as large as what the
// longest line takes that tokenize.go lets through.
static constexpr int32_t long_text   = 2048;
static constexpr size_t  large_stack = size_t(128) << 20;  // only what is used takes memory

// on_large_stack runs body in a thread that it waits for.
template <typename F> static void on_large_stack(F && body) {
    struct job {
        F &                body;
        std::exception_ptr thrown;
    } j{body, nullptr};
    const auto start = [](void * p) -> void * {
        auto & j = *static_cast<job *>(p);
        try {
            j.body();
        } catch (...) {
            j.thrown = std::current_exception();
        }
        return nullptr;
    };
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, large_stack);
    pthread_t thread;
    const int failed = pthread_create(&thread, &attr, start, &j);
    pthread_attr_destroy(&attr);
    if (failed != 0) {
        throw std::runtime_error(std::string("no thread for a long text: ") + strerror(failed));
    }
    pthread_join(thread, nullptr);
    if (j.thrown) {
        std::rethrow_exception(j.thrown);
    }
}

int b3_tokenize(const llama_model * model, const char * text, int32_t len, int32_t * tokens, int32_t cap, int special, int32_t * count, b3_error * err) {
    return b3::guard(err, [&] {
        const auto * vocab = llama_model_get_vocab(model);
        int32_t      n = 0;
        const auto   tokenize = [&] { n = llama_tokenize(vocab, text, len, tokens, cap, false, special != 0); };
        if (len > long_text && llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_BPE) {
            on_large_stack(tokenize);
        } else {
            tokenize();
        }
        if (n == std::numeric_limits<int32_t>::min()) {
            b3::set_error(err, "the text has too many tokens");
            return (int) B3_FAILED;
        }
        *count = n < 0 ? -n : n;
        return (int) B3_OK;
    });
}

//
// contexts
//

// A b3_context is llama.cpp's context and the parts of a batch that are the same
// in each: every row belongs to one sequence.
struct b3_context {
    llama_context *             llama = nullptr;
    std::vector<int32_t>        n_seq_id;  // ones
    std::vector<llama_seq_id>   seq;
    std::vector<llama_seq_id *> seq_id;    // seq_id[i] = &seq[i]

    ~b3_context() { llama_free(llama); }
};

llama_context * b3_context_llama(b3_context * c) { return c->llama; }

int b3_context_new(llama_model * model, const b3_context_params * p, b3_context ** out, uint32_t limits[4], b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        llama_context_params params = llama_context_default_params();
        params.n_ctx           = p->cells;
        params.n_seq_max       = p->sequences;
        params.n_batch         = p->batch;
        params.n_ubatch        = p->ubatch;
        params.n_outputs_max   = p->outputs;
        params.n_threads       = p->threads;
        params.n_threads_batch = p->threads;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        params.type_k          = (ggml_type) p->kv_type;
        params.type_v          = (ggml_type) p->kv_type;
        params.kv_unified      = true;
        params.swa_full        = true;
        params.no_perf         = true;

        auto c = std::make_unique<b3_context>();
        c->llama = llama_init_from_model(model, params);
        if (c->llama == nullptr) {
            b3::set_error(err, errors.reason("llama_init_from_model failed"));
            return (int) B3_FAILED;
        }
        limits[0] = llama_n_ctx(c->llama);
        limits[1] = llama_n_seq_max(c->llama);
        limits[2] = llama_n_batch(c->llama);
        limits[3] = llama_n_ubatch(c->llama);

        c->n_seq_id.assign(limits[2], 1);
        c->seq.resize(limits[2]);
        c->seq_id.resize(limits[2]);
        for (uint32_t i = 0; i < limits[2]; i++) {
            c->seq_id[i] = &c->seq[i];
        }
        *out = c.release();
        return (int) B3_OK;
    });
}

void b3_context_free(b3_context * c) {
    b3::guard(nullptr, [&] {
        delete c;
        return (int) B3_OK;
    });
}

namespace {

// While a NonCausal lives, the rows of a batch see each other both ways.
class NonCausal {
  public:
    NonCausal(llama_context * llama, bool on) : llama(on ? llama : nullptr) { set(false); }
    ~NonCausal() { set(true); }
    NonCausal(const NonCausal &) = delete;
    NonCausal & operator=(const NonCausal &) = delete;

  private:
    void set(bool causal) {
        if (llama != nullptr) {
            llama_set_causal_attn(llama, causal);
        }
    }
    llama_context * llama;
};

}  // namespace

int b3_decode(b3_context * c, int32_t rows, const int32_t * token, const float * embd, const int32_t * pos, const int32_t * seq, const int8_t * output, int non_causal, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        b3::LogQuiet   quiet;  // code 1 is no warning: the scheduler makes room
        std::memcpy(c->seq.data(), seq, rows * sizeof(*seq));

        llama_batch batch = {};
        batch.n_tokens = rows;
        batch.token    = const_cast<int32_t *>(token);
        batch.embd     = const_cast<float *>(embd);
        batch.pos      = const_cast<int32_t *>(pos);
        batch.n_seq_id = c->n_seq_id.data();
        batch.seq_id   = c->seq_id.data();
        batch.logits   = const_cast<int8_t *>(output);

        NonCausal attention(c->llama, non_causal != 0);
        const int code = llama_decode(c->llama, batch);
        llama_synchronize(c->llama);
        if (code != 0) {
            b3::set_error(err, errors.reason(""));
        }
        return code;
    });
}

//
// sequences
//

int b3_seq_copy(b3_context * c, int32_t src, int32_t dst, int32_t from, int32_t to) {
    return b3::guard(nullptr, [&] {
        llama_memory_seq_cp(llama_get_memory(c->llama), src, dst, from, to);
        return (int) B3_OK;
    });
}

int b3_seq_remove(b3_context * c, int32_t seq, int32_t from, int32_t to) {
    return b3::guard(nullptr, [&] {
        return (int) (llama_memory_seq_rm(llama_get_memory(c->llama), seq, from, to) ? B3_OK : B3_FAILED);
    });
}

void b3_seq_range(b3_context * c, int32_t seq, int32_t * first, int32_t * last) {
    llama_memory_t memory = llama_get_memory(c->llama);
    *first = llama_memory_seq_pos_min(memory, seq);
    *last  = llama_memory_seq_pos_max(memory, seq);
}

namespace {

llama_state_seq_flags state_flags(int partial) { return partial ? LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY : LLAMA_STATE_SEQ_FLAGS_NONE; }

}  // namespace

int b3_state_size(b3_context * c, int32_t seq, int partial, size_t * size, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        *size = llama_state_seq_get_size_ext(c->llama, seq, state_flags(partial));
        if (*size == 0) {
            b3::set_error(err, errors.reason("llama_state_seq_get_size_ext failed"));
            return (int) B3_FAILED;
        }
        return (int) B3_OK;
    });
}

int b3_state_save(b3_context * c, int32_t seq, int partial, uint8_t * dst, size_t size, size_t * written, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        *written = llama_state_seq_get_data_ext(c->llama, dst, size, seq, state_flags(partial));
        if (*written == 0) {
            b3::set_error(err, errors.reason("llama_state_seq_get_data_ext failed"));
            return (int) B3_FAILED;
        }
        return (int) B3_OK;
    });
}

int b3_state_load(b3_context * c, int32_t seq, int partial, const uint8_t * src, size_t size, b3_error * err) {
    return b3::guard(err, [&] {
        b3::LogCapture errors;
        if (llama_state_seq_set_data_ext(c->llama, src, size, seq, state_flags(partial)) == 0) {
            b3::set_error(err, errors.reason("llama_state_seq_set_data_ext failed"));
            return (int) B3_FAILED;
        }
        return (int) B3_OK;
    });
}
