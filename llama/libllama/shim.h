// The C side of package libllama: llama.h behind functions that take flat
// arrays, return int codes and never throw. C owns what it allocates until the
// matching _free; no pointer of Go's is kept after a call returns.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct llama_model;
struct llama_context;

enum {
    B3_OK        = 0,
    B3_FAILED    = -1000, // llama.cpp refused; b3_error has its last error line
    B3_EXCEPTION = -1001, // a C++ exception; b3_error has its text
};

// A b3_error takes the reason of a failure. Callers may pass NULL.
typedef struct b3_error {
    char text[1024];
} b3_error;

// Log. Lines reach Go's b3GoLog from any thread. Levels are ggml's.
enum {
    B3_LOG_DEBUG = 1,
    B3_LOG_INFO  = 2,
    B3_LOG_WARN  = 3,
    B3_LOG_ERROR = 4,
};

// b3_log_start routes llama.cpp's log to b3GoLog, lines below min_level dropped.
void b3_log_start(int min_level);

// Backends and devices.
typedef struct b3_device {
    const char * name;        // static
    const char * description; // static
    int32_t      gpu;
    uint64_t     free, total;
} b3_device;

// b3_backend_init is llama_backend_init. dir is the folder of backends to load
// (ggml_backend_load_all_from_path), or NULL where they are linked in.
int b3_backend_init(const char * dir, b3_error * err);
// b3_backend_load loads one backend file (ggml_backend_load).
int b3_backend_load(const char * path, b3_error * err);
// b3_backend_devices says how many devices a registered backend has, or -1 when
// it is not there (ggml_backend_reg_by_name).
int32_t      b3_backend_devices(const char * name);
int32_t      b3_device_count(void);
void         b3_device_get(int32_t i, b3_device * out);
const char * b3_version(void); // llama_version; static
const char * b3_commit(void);  // llama_commit; static

// Models.
// b3_model_load is llama_model_load_from_file. progress is the cgo.Handle that
// b3GoProgress gets. gpu_layers below 0 means all.
int  b3_model_load(const char * path, int32_t gpu_layers, int vocab_only, uintptr_t progress,
                   struct llama_model ** out, b3_error * err);
void b3_model_free(struct llama_model * model);

typedef struct b3_model_info {
    uint64_t parameters, size;
    int32_t  train_context, embedding, swa;
    int32_t  mrope, recurrent, decoder, encoder;
} b3_model_info;

void b3_model_get_info(const struct llama_model * model, b3_model_info * out);
// b3_model_desc is llama_model_desc, b3_model_meta llama_model_meta_val_str: the
// full length of the text, or -1 when there is none.
int32_t b3_model_desc(const struct llama_model * model, char * buf, size_t size);
int32_t b3_model_meta(const struct llama_model * model, const char * key, char * buf, size_t size);

// Vocabulary. b3_vocab_size gives the sizes of the arrays that b3_vocab_fill
// takes: pieces end to end (llama_token_to_piece with special texts), offsets
// of tokens + 1 entries, and per token llama_vocab_get_attr and _is_eog.
int     b3_vocab_size(const struct llama_model * model, int32_t * tokens, size_t * bytes, b3_error * err);
int     b3_vocab_fill(const struct llama_model * model, char * text, uint32_t * offsets, uint16_t * attr, uint8_t * eog, b3_error * err);
int32_t b3_vocab_type(const struct llama_model * model);
int32_t b3_vocab_bos(const struct llama_model * model); // -1 unless llama_vocab_get_add_bos

// b3_tokenize is llama_tokenize without BOS and EOS. *count is the number of
// tokens of the text; tokens has been written only if it is not above cap.
int b3_tokenize(const struct llama_model * model, const char * text, int32_t len, int32_t * tokens, int32_t cap, int special, int32_t * count, b3_error * err);

// Contexts.
typedef struct b3_context b3_context;

typedef struct b3_context_params {
    uint32_t cells, sequences, batch, ubatch, outputs;
    int32_t  threads;
    int32_t  kv_type; // enum ggml_type
} b3_context_params;

// b3_context_new is llama_init_from_model. limits gets cells, sequences, batch,
// ubatch as they are.
int  b3_context_new(struct llama_model * model, const b3_context_params * p, b3_context ** out, uint32_t limits[4], b3_error * err);
void b3_context_free(b3_context * c);
// b3_context_llama is the context behind c, for the other files of the shim.
struct llama_context * b3_context_llama(b3_context * c);

// b3_decode is llama_decode and llama_synchronize; token or embd is NULL. It
// returns llama_decode's code or B3_EXCEPTION.
int b3_decode(b3_context * c, int32_t rows, const int32_t * token, const float * embd, const int32_t * pos, const int32_t * seq, const int8_t * output, int non_causal, b3_error * err);

// Sequences: llama_memory_seq_cp, _rm, _pos_min and _pos_max.
int  b3_seq_copy(b3_context * c, int32_t src, int32_t dst, int32_t from, int32_t to);
int  b3_seq_remove(b3_context * c, int32_t seq, int32_t from, int32_t to);
void b3_seq_range(b3_context * c, int32_t seq, int32_t * first, int32_t * last);

// State of a sequence: llama_state_seq_get_size_ext, _get_data_ext, _set_data_ext.
int b3_state_size(b3_context * c, int32_t seq, int partial, size_t * size, b3_error * err);
int b3_state_save(b3_context * c, int32_t seq, int partial, uint8_t * dst, size_t size, size_t * written, b3_error * err);
int b3_state_load(b3_context * c, int32_t seq, int partial, const uint8_t * src, size_t size, b3_error * err);

#ifdef __cplusplus
}
#endif
