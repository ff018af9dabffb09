#include "shim_sample.h"

#include <llama.h>

#include <memory>
#include <vector>

#include "sample_pool.h"
#include "sample_row.h"
#include "shim_guard.h"

namespace {

// Waking a thread costs some microseconds, a row of 150,000 logits some tens: a
// worker more pays from about this many logits.
constexpr int64_t worker_logits = 400000;

}  // namespace

struct b3_sampler final : private b3::task {
  public:
    b3_sampler(int32_t vocab, int32_t threads, const b3::kernels & k) : vocab_(vocab), kernels_(k), pool_(threads) {
        samplers_.resize(threads);
    }

    int32_t vocab() const { return vocab_; }

    // sample draws for each row from its logits, of which there are as many. It
    // returns false when a row's token ids are out of range.
    bool sample(const b3_sample_row * rows, int32_t n, const uint64_t * masks, b3_sampled * out) {
        const int64_t workers = std::min<int64_t>({1 + (int64_t) n * vocab_ / worker_logits, pool_.workers(), n});
        for (int64_t w = 0; w < workers; w++) {
            if (samplers_[w] == nullptr) {
                samplers_[w] = std::make_unique<b3::row_sampler>(vocab_, kernels_);
            }
        }
        rows_  = rows;
        masks_ = masks;
        out_   = out;
        valid_ = true;
        pool_.run(*this, n, (int32_t) workers);
        return valid_;
    }

    // logits are those of the rows of the next sample.
    std::vector<const float *> logits;

  private:
    void run(int32_t part, int32_t worker) noexcept override {
        const b3_sample_row & r = rows_[part];
        const uint64_t * mask = r.mask < 0 ? nullptr : masks_ + (size_t) r.mask * ((vocab_ + 63) / 64);
        if (!samplers_[worker]->sample(logits[part], r, mask, out_ + part)) {
            valid_ = false;
        }
    }

    const int32_t vocab_;
    const b3::kernels & kernels_;
    b3::pool pool_;
    std::vector<std::unique_ptr<b3::row_sampler>> samplers_; // by worker

    const b3_sample_row * rows_  = nullptr;
    const uint64_t *      masks_ = nullptr;
    b3_sampled *          out_   = nullptr;
    std::atomic<bool>     valid_{true};
};

int b3_sampler_new(int32_t vocab, int32_t threads, int32_t level, b3_sampler ** out, b3_error * err) {
    return b3::guard(err, [&] {
        const b3::kernels * k = level < 0 ? &b3::best_kernels() : b3::find_kernels(level);
        if (k == nullptr) {
            b3::set_error(err, "this CPU does not have the instruction set");
            return (int) B3_FAILED;
        }
        *out = new b3_sampler(vocab, threads, *k);
        return (int) B3_OK;
    });
}

void b3_sampler_free(b3_sampler * s) {
    delete s;
}

// sample runs s with the logits that row_logits gives for an output.
template <typename F>
static int sample(b3_sampler * s, const b3_sample_row * rows, int32_t n, const uint64_t * masks, b3_sampled * out,
                  b3_error * err, F && row_logits) {
    return b3::guard(err, [&] {
        s->logits.resize(n);
        for (int32_t i = 0; i < n; i++) {
            s->logits[i] = row_logits(rows[i].output);
            if (s->logits[i] == nullptr) {
                b3::set_error(err, "output " + std::to_string(rows[i].output) + " has no logits");
                return (int) B3_FAILED;
            }
        }
        if (!s->sample(rows, n, masks, out)) {
            b3::set_error(err, "a token id is out of range");
            return (int) B3_FAILED;
        }
        return (int) B3_OK;
    });
}

int b3_sample(b3_sampler * s, b3_context * c, const b3_sample_row * rows, int32_t n,
              const uint64_t * masks, b3_sampled * out, b3_error * err) {
    return sample(s, rows, n, masks, out, err,
                  [ctx = b3_context_llama(c)](int32_t output) { return llama_get_logits_ith(ctx, output); });
}

int b3_sample_logits(b3_sampler * s, const float * logits, const b3_sample_row * rows, int32_t n,
                     const uint64_t * masks, b3_sampled * out, b3_error * err) {
    return sample(s, rows, n, masks, out, err,
                  [=](int32_t output) { return logits + (size_t) output * s->vocab(); });
}
