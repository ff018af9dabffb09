// One token from one row of logits.
#pragma once

#include "sample_logits.h"

namespace b3 {

// row_sampler draws tokens, one row at a time. It allocates in its constructor
// alone, and what a row leaves in it does not matter to the next.
//
// Top-k, top-p and min-p each keep the head of one order: likeliest first, lower
// id first among equals. So it is enough to collect the tokens above a threshold
// that surely holds the head, and the maxima of blocks tell where they are.
class row_sampler {
  public:
    row_sampler(int32_t vocab, const kernels & k);

    // sample fills out. It returns false when a token id of the request is out of
    // range.
    bool sample(const float * row, const b3_sample_row & request, const uint64_t * mask, b3_sampled * out);

  private:
    int32_t draw(const b3_sample_row & r);
    int32_t draw_any(double u);             // of all tokens
    int32_t draw_collected(double u) const; // of the collected candidates
    int32_t argmax();
    void    report(int32_t top, b3_sampled * out);

    // collect finds the tokens whose logits reach a threshold, collect_top the k
    // likeliest, in no order. Their weights are not set.
    void  collect(float threshold);
    void  collect_share(double weight, float least);
    void  collect_top(int32_t k);
    float top_bound(int32_t k);
    void  weigh();

    // keep_share keeps the fewest candidates that weigh so much, likeliest first,
    // keep_near those whose logits reach a threshold.
    void      keep_share(double weight);
    candidate last_of_share(double weight);
    void      keep_near(float threshold);

    double sum_all(float scale);
    double sum_collected() const;

    const kernels & kernels_;
    int32_t vocab_;
    logits  logits_;
    float   scale_ = 1; // of differences of logits in exponents: 1 / temperature
    int32_t n_     = 0; // candidates collected
    std::unique_ptr<candidate[]> collected_, bin_;
    std::unique_ptr<float[]>     sums_; // of the weights of each block
    std::unique_ptr<float[]>     maxima_;
};

}  // namespace b3
