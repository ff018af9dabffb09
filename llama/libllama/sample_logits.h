// A row of logits with the request's changes, seen block by block.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>

#include "sample_kernels.h"
#include "shim_sample.h"

namespace b3 {

// buffer is memory without a value, so that what is never used costs nothing.
template <typename T> std::unique_ptr<T[]> buffer(size_t n) { return std::unique_ptr<T[]>(new T[n]); }

// by_block finds the entries of a list that belong to a block of tokens.
template <typename Entry> class by_block {
  public:
    by_block(int32_t vocab, int32_t blocks)
        : vocab_(vocab), blocks_(blocks), start_(buffer<int32_t>(blocks + 1)), sorted_(buffer<Entry>(vocab)) {}

    // set takes a list, which must live as long as it is used. Ascending ids cost
    // one look at each entry, others a counting sort. It returns false when an
    // id is out of range or there are more entries than tokens.
    bool set(const Entry * entries, int32_t n);

    const Entry * begin(int32_t block) const { return entries_ + start_[block]; }
    const Entry * end(int32_t block) const { return entries_ + start_[block + 1]; }
    bool empty(int32_t block) const { return empty_ || start_[block] == start_[block + 1]; }

  private:
    bool sort(const Entry * entries, int32_t n);

    int32_t vocab_, blocks_;
    bool    empty_ = true;
    const Entry * entries_ = nullptr;
    std::unique_ptr<int32_t[]> start_; // entries_[start_[b]] is the first of block b
    std::unique_ptr<Entry[]>   sorted_;
};

// logits is what a row's request makes of the model's logits: bias, mask and
// penalties. Most blocks are the model's own memory, changed ones are made in a
// small buffer each time they are looked at. Nothing is as long as the row.
class logits {
  public:
    logits(int32_t vocab, const kernels & k);

    // set takes a row's request. It returns false when a token id is out of range.
    bool set(const float * row, const b3_sample_row & request, const uint64_t * mask);
    // lift takes the penalties away, for what is asked of the model alone.
    void lift();

    int32_t blocks() const { return blocks_; }
    // max is the largest logit, -inf without a candidate. It is never +inf: such
    // logits become the only candidates, all alike.
    float max() const { return max_; }
    // block_max is the largest logit of a block.
    float block_max(int32_t block) const { return maxima_[block]; }
    const float * maxima() const { return maxima_.get(); }
    // block gives block_size logits, -inf past the vocabulary's end. They are good
    // until the next call.
    const float * block(int32_t block);
    // at is one token's logit.
    float at(int32_t id) { return block(id / block_size)[id % block_size]; }

  private:
    bool penalizes() const;
    void scan();
    bool banned(int32_t block) const;
    const uint64_t * words(int32_t block, uint64_t * tail) const;
    void add_biases(int32_t block);

    const kernels & kernels_;
    int32_t vocab_, blocks_;
    const float *         row_     = nullptr;
    const b3_sample_row * request_ = nullptr;
    const uint64_t *      mask_    = nullptr;
    by_block<b3_bias>     biases_;
    by_block<b3_count>    counts_;
    bool  penalize_ = false;
    bool  infinite_ = false; // the row has +inf: see max
    float max_      = -INFINITY;
    std::unique_ptr<float[]> maxima_;
    float changed_[block_size];
};

}  // namespace b3
