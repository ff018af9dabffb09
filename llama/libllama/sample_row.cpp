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
      bin_(buffer<candidate>((size_t) logits_.blocks() * block_size)),
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

    if (top_k) {
        collect_top(r.top_k);
        weigh();
        if (top_p) {
            keep_share(r.top_p * sum_collected());
        }
    } else if (top_p) {
        collect_share(r.top_p, near);
    } else if (r.min_p > 0) {
        collect(near);
        weigh();
    } else {
        return draw_any(u);
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

// collect_share keeps the fewest tokens that weigh a share of all, likeliest
// first; it may leave out what is below least.
void row_sampler::collect_share(double share, float least) {
    const double sum = sum_all(scale_), weight = share * sum, rest = sum - weight;
    // Tokens lighter than rest / n weigh less than rest if they are at most n. Few
    // mostly are heavier than for a small n, and for the vocabulary's n it is sure.
    for (const double n : {1e3, 2.0 * vocab_}) {
        const float bound = logits_.max() + (float) std::log(rest / n) / scale_;
        collect(std::max(least, bound));
        weigh();
        if (bound <= least || sum_collected() >= weight) {
            break;
        }
    }
    keep_share(weight);
}

void row_sampler::collect_top(int32_t k) {
    collect(top_bound(k));
    if (n_ > k) {
        std::nth_element(collected_.get(), collected_.get() + k, collected_.get() + n_, likelier);
        n_ = k;
    }
}

// top_bound is a logit that at least k tokens reach if there are so many
// candidates: the k-th largest of the maxima of disjoint sets of tokens. The
// more sets to a k, the fewer tokens more than k reach it.
float row_sampler::top_bound(int32_t k) {
    const int32_t blocks = logits_.blocks(), groups = blocks * block_groups;
    int32_t sets = blocks;
    if (k <= blocks / 2) {
        std::copy_n(logits_.maxima(), blocks, maxima_.get());
    } else if (k <= groups - groups / 8) {
        for (int32_t b = 0; b < blocks; b++) {
            kernels_.group_max(logits_.block(b), maxima_.get() + (size_t) b * block_groups);
        }
        sets = groups;
    } else {
        return -INFINITY;
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

void row_sampler::keep_share(double weight) {
    const candidate last = last_of_share(weight);
    int32_t kept = 0;
    for (int32_t i = 0; i < n_; i++) { // without a branch that could not be predicted
        collected_[kept] = collected_[i];
        kept += !likelier(last, collected_[i]);
    }
    n_ = kept;
}

// last_of_share finds the candidate with which the sum of weights, likeliest
// first, reaches a weight. Sorting all would take longest, so the weights of
// bins of logits are summed first, and only the bin that reaches it is sorted.
candidate row_sampler::last_of_share(double weight) {
    constexpr int32_t bins = 1024;
    const double max = logits_.max();
    float min = logits_.max();
    for (int32_t i = 0; i < n_; i++) {
        min = std::min(min, collected_[i].logit);
    }
    const double scale = max > min ? (bins - 1) / (max - min) : 0;
    const auto bin = [=](const candidate & c) { return (int32_t) ((max - c.logit) * scale); };

    double sums[bins] = {};
    for (int32_t i = 0; i < n_; i++) {
        sums[bin(collected_[i])] += collected_[i].weight;
    }
    int32_t border = 0, last = bin(candidate{min, 0, 0});
    while (border < last && sums[border] < weight) {
        weight -= sums[border++];
    }
    int32_t len = 0;
    for (int32_t i = 0; i < n_; i++) {
        bin_[len] = collected_[i];
        len += bin(collected_[i]) == border;
    }
    std::sort(bin_.get(), bin_.get() + len, likelier);
    int32_t i = 0;
    while (i < len - 1 && (weight -= bin_[i].weight) > 0) {
        i++;
    }
    return bin_[i];
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
