#include "sample_row.h"

#include <algorithm>
#include <cfloat>
#include <functional>

#include "sample_random.h"

namespace b3 {

// likelier is the order whose head truncation keeps.
static bool likelier(const candidate & a, const candidate & b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

row_sampler::row_sampler(int32_t vocab, const kernels & k)
    : kernels_(k),
      vocab_(vocab),
      logits_(vocab, k),
      collected_(buffer<candidate>((size_t) logits_.blocks() * block_size)),
      sums_(buffer<float>(logits_.blocks())),
      maxima_(buffer<float>((size_t) logits_.blocks() * block_groups)) {}

bool row_sampler::sample(const float * row, const b3_sample_row & request, const uint64_t * mask, b3_sampled * out) {
    *out         = {};
    out->id      = -1;
    out->logprob = -INFINITY;
    if (!logits_.set(row, request, mask)) {
        return false;
    }
    if (logits_.max() == -INFINITY) {
        return true;
    }
    out->id = draw(request);
    if (request.top >= 0) {
        logits_.lift();
        report(request.top, out);
    }
    return true;
}

int32_t row_sampler::draw(const b3_sample_row & r) {
    if (r.temperature == 0 || r.top_k == 1) {
        return argmax();
    }
    const bool  top_k = r.top_k > 0 && r.top_k < vocab_, top_p = r.top_p < 1;
    const float max  = logits_.max();
    const float near = r.min_p > 0 ? max + r.temperature * std::log(r.min_p) : -INFINITY;
    const double u   = uniform(r.seed, r.step);
    scale_ = std::min(1 / r.temperature, FLT_MAX);

    double share = 0;
    if (top_k) {
        collect_top(r.top_k);
    } else if (top_p) {
        // All tokens that weigh less than this are less than what top-p drops.
        const double sum = sum_all(scale_);
        const float dropped = (1 - r.top_p) * sum / (2.0 * vocab_);
        share = r.top_p * sum;
        collect(std::max(near, max + r.temperature * std::log(dropped)));
    } else if (r.min_p > 0) {
        collect(near);
    } else {
        return draw_any(u);
    }
    weigh();
    if (top_p) {
        keep_share(top_k ? r.top_p * sum_collected() : share);
    }
    keep_near(near);
    return draw_collected(u);
}

int32_t row_sampler::argmax() {
    int32_t b = 0;
    while (logits_.block_max(b) != logits_.max()) {
        b++;
    }
    kernels_.collect(logits_.block(b), logits_.max(), b * block_size, collected_.get());
    return collected_[0].id;
}

int32_t row_sampler::draw_any(double u) {
    double rest = u * sum_all(scale_);
    int32_t in = 0;
    for (int32_t b = 0; b < logits_.blocks(); b++) {
        if (sums_[b] == 0) {
            continue;
        }
        in = b;
        if (rest < sums_[b]) {
            break;
        }
        rest -= sums_[b];
    }
    // Rounding can carry rest past the end; then the last that can be drawn is.
    float w[block_size];
    kernels_.weights(logits_.block(in), logits_.max(), scale_, w);
    int32_t last = 0;
    for (int32_t i = 0; i < block_size; i++) {
        if (w[i] == 0) {
            continue;
        }
        last = i;
        if (rest < w[i]) {
            break;
        }
        rest -= w[i];
    }
    return in * block_size + last;
}

int32_t row_sampler::draw_collected(double u) const {
    double rest = u * sum_collected();
    int32_t last = 0;
    for (int32_t i = 0; i < n_; i++) {
        if (collected_[i].weight == 0) {
            continue;
        }
        last = i;
        if (rest < collected_[i].weight) {
            break;
        }
        rest -= collected_[i].weight;
    }
    return collected_[last].id;
}

void row_sampler::report(int32_t top, b3_sampled * out) {
    const double base = logits_.max() + std::log(sum_all(1));
    out->logprob = (float) (logits_.at(out->id) - base);
    if (top == 0) {
        return;
    }
    collect_top(std::min<int32_t>(top, B3_MAX_TOP));
    std::sort(collected_.get(), collected_.get() + n_, likelier);
    for (int32_t i = 0; i < n_; i++) {
        out->top[i] = {collected_[i].id, (float) (collected_[i].logit - base)};
    }
    out->n = (int8_t) n_;
}

void row_sampler::collect(float threshold) {
    n_ = 0;
    threshold = std::max(threshold, -FLT_MAX); // -inf is no candidate
    for (int32_t b = 0; b < logits_.blocks(); b++) {
        if (logits_.block_max(b) >= threshold) {
            n_ += kernels_.collect(logits_.block(b), threshold, b * block_size, collected_.get() + n_);
        }
    }
}

void row_sampler::collect_top(int32_t k) {
    collect(top_bound(k));
    if (n_ > k) {
        std::nth_element(collected_.get(), collected_.get() + k, collected_.get() + n_, likelier);
        n_ = k;
    }
}

// top_bound is a logit that at least k tokens reach if there are so many
// candidates: the k-th largest of the maxima of disjoint sets of tokens.
float row_sampler::top_bound(int32_t k) {
    const int32_t blocks = logits_.blocks();
    int32_t sets = blocks;
    if (k <= blocks / 4) {
        std::copy_n(logits_.maxima(), blocks, maxima_.get());
    } else {
        sets = blocks * block_groups;
        if (k > sets / 4) {
            return -INFINITY;
        }
        for (int32_t b = 0; b < blocks; b++) {
            kernels_.group_max(logits_.block(b), maxima_.get() + (size_t) b * block_groups);
        }
    }
    std::nth_element(maxima_.get(), maxima_.get() + k - 1, maxima_.get() + sets, std::greater<float>());
    return maxima_[k - 1];
}

void row_sampler::weigh() {
    float x[block_size], w[block_size];
    for (int32_t i = 0; i < n_; i += block_size) {
        candidate * c = collected_.get() + i;
        const int32_t len = std::min(block_size, n_ - i);
        for (int32_t j = 0; j < len; j++) {
            x[j] = c[j].logit;
        }
        std::fill(x + len, x + block_size, -INFINITY);
        kernels_.weights(x, logits_.max(), scale_, w);
        for (int32_t j = 0; j < len; j++) {
            c[j].weight = w[j];
        }
    }
}

// Sorting all candidates takes longest, so they are first put into bins by logit,
// and only those in the bin where the share is reached are sorted.
void row_sampler::keep_share(double weight) {
    constexpr int32_t bins = 1024;
    candidate * const first = collected_.get(), * const last = first + n_;
    if (n_ <= 64) {
        sort_share(first, last, weight);
        return;
    }
    const auto range = std::minmax_element(first, last, [](auto & a, auto & b) { return a.logit < b.logit; });
    const double max = range.second->logit, width = (max - range.first->logit) / (bins - 1);
    const double scale = width > 0 ? 1 / width : 0;
    const auto bin = [=](const candidate & c) { return (int32_t) ((max - c.logit) * scale); };

    double sums[bins] = {};
    for (const candidate * c = first; c != last; c++) {
        sums[bin(*c)] += c->weight;
    }
    int32_t border = 0;
    while (border < bins - 1 && sums[border] < weight) {
        weight -= sums[border++];
    }
    candidate * const inner = std::partition(first, last, [=](auto & c) { return bin(c) < border; });
    candidate * const outer = std::partition(inner, last, [=](auto & c) { return bin(c) == border; });
    sort_share(inner, outer, weight);
}

void row_sampler::sort_share(candidate * first, candidate * last, double weight) {
    std::sort(first, last, likelier);
    while (first != last && (weight -= first++->weight) > 0) {
    }
    n_ = (int32_t) (first - collected_.get());
}

void row_sampler::keep_near(float threshold) {
    candidate * const first = collected_.get();
    n_ = (int32_t) (std::remove_if(first, first + n_, [=](auto & c) { return c.logit < threshold; }) - first);
}

double row_sampler::sum_all(float scale) {
    double sum = 0;
    const float max = logits_.max();
    for (int32_t b = 0; b < logits_.blocks(); b++) {
        const bool light = (logits_.block_max(b) - max) * scale < lowest_exponent;
        sums_[b] = light ? 0 : kernels_.sum(logits_.block(b), max, scale);
        sum += sums_[b];
    }
    return sum;
}

double row_sampler::sum_collected() const {
    double sum = 0;
    for (int32_t i = 0; i < n_; i++) {
        sum += collected_[i].weight;
    }
    return sum;
}

}  // namespace b3
