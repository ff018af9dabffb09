#include "sample_logits.h"

#include <algorithm>
#include <cstring>

namespace b3 {

template <typename Entry> bool by_block<Entry>::set(const Entry * entries, int32_t n) {
    empty_ = n == 0;
    if (empty_) {
        return true;
    }
    if (n > vocab_) {
        return false;
    }
    int32_t block = 0, last = 0;
    start_[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t id = entries[i].id;
        if (id < last || id >= vocab_) {
            return sort(entries, n);
        }
        for (last = id; block < id / block_size;) {
            start_[++block] = i;
        }
    }
    while (block < blocks_) {
        start_[++block] = n;
    }
    entries_ = entries;
    return true;
}

template <typename Entry> bool by_block<Entry>::sort(const Entry * entries, int32_t n) {
    std::fill_n(start_.get(), blocks_ + 1, 0);
    for (int32_t i = 0; i < n; i++) {
        const int32_t id = entries[i].id;
        if (id < 0 || id >= vocab_) {
            return false;
        }
        start_[id / block_size]++;
    }
    for (int32_t b = 1; b <= blocks_; b++) {
        start_[b] += start_[b - 1];
    }
    // Each start is its block's end now and moves down to the first entry.
    for (int32_t i = n - 1; i >= 0; i--) {
        sorted_[--start_[entries[i].id / block_size]] = entries[i];
    }
    entries_ = sorted_.get();
    return true;
}

logits::logits(int32_t vocab, const kernels & k)
    : kernels_(k),
      vocab_(vocab),
      blocks_((vocab + block_size - 1) / block_size),
      biases_(vocab, blocks_),
      counts_(vocab, blocks_),
      maxima_(buffer<float>(blocks_)) {}

bool logits::set(const float * row, const b3_sample_row & request, const uint64_t * mask) {
    row_      = row;
    request_  = &request;
    mask_     = mask;
    penalize_ = penalizes();
    if (!biases_.set(request.biases, request.n_biases) || !counts_.set(request.counts, penalize_ ? request.n_counts : 0)) {
        return false;
    }
    scan();
    return true;
}

bool logits::penalizes() const {
    return request_->n_counts > 0 &&
           (request_->presence != 0 || request_->frequency != 0 || request_->repetition != 1);
}

void logits::lift() {
    if (penalize_) {
        penalize_ = false;
        scan();
    }
}

void logits::scan() {
    infinite_ = false;
    for (int pass = 0; pass < 2; pass++) {
        max_ = -INFINITY;
        for (int32_t b = 0; b < blocks_; b++) {
            maxima_[b] = banned(b) ? -INFINITY : kernels_.max(block(b));
            max_ = std::max(max_, maxima_[b]);
        }
        if (max_ != INFINITY) {
            return;
        }
        infinite_ = true;
    }
}

const float * logits::block(int32_t block) {
    const bool penalize = penalize_ && !counts_.empty(block);
    const int32_t first = block * block_size, len = std::min(block_size, vocab_ - first);
    const float * x = row_ + first;
    const auto own = [&] {
        if (x != changed_) {
            std::copy(x, x + len, changed_);
            std::fill(changed_ + len, changed_ + block_size, -INFINITY);
            x = changed_;
        }
    };
    if (len < block_size) {
        own();
    }
    if (!biases_.empty(block)) {
        own();
        add_biases(block);
    }
    if (mask_ != nullptr) {
        uint64_t tail[block_words];
        kernels_.mask(x, words(block, tail), changed_);
        x = changed_;
    }
    if (penalize) {
        own();
        kernels_.penalize(changed_, counts_.begin(block), (int32_t) (counts_.end(block) - counts_.begin(block)), *request_);
    }
    if (infinite_) {
        own();
        std::replace_if(changed_, changed_ + block_size, [](float v) { return v != INFINITY; }, -INFINITY);
        std::replace(changed_, changed_ + block_size, INFINITY, 0.0f);
    }
    return x;
}

void logits::add_biases(int32_t block) {
    for (const b3_bias * e = biases_.begin(block); e != biases_.end(block); e++) {
        changed_[e->id % block_size] += e->bias; // +inf with a ban is NaN, which is banned too
    }
}

// words gives a block's part of the mask, through tail where the mask is shorter.
const uint64_t * logits::words(int32_t block, uint64_t * tail) const {
    const int32_t first = block * block_words, all = (vocab_ + 63) / 64;
    if (first + block_words <= all) {
        return mask_ + first;
    }
    std::fill_n(tail, block_words, 0);
    std::copy(mask_ + first, mask_ + all, tail);
    return tail;
}

bool logits::banned(int32_t block) const {
    if (mask_ == nullptr) {
        return false;
    }
    uint64_t tail[block_words];
    const uint64_t * w = words(block, tail);
    return std::all_of(w, w + block_words, [](uint64_t bits) { return bits == 0; });
}

}  // namespace b3
