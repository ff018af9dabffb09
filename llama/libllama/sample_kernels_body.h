// The text of the kernels. sample_kernels.cpp includes it once per instruction
// set, in a namespace of its own, with LANES set to the floats of a register.
// It must not instantiate templates of the standard library: the linker keeps
// one copy of each, and would give a wide one to code that runs everywhere.
// There is no #pragma once here for that reason.

typedef float    vf __attribute__((vector_size(4 * LANES)));
typedef int32_t  vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef float    vf_unaligned __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef float    v4 __attribute__((vector_size(16), aligned(4), may_alias));

static inline vf load(const float * p) { return *(const vf_unaligned *) p; }
static inline void store(float * p, vf v) { *(vf_unaligned *) p = v; }
static inline vf splat(float x) { return x - vf{}; }
// larger is b where a is NaN.
static inline vf larger(vf a, vf b) { return a > b ? a : b; }

// reached has a bit for each lane of v that is at least t.
static inline uint32_t reached(vf v, vf t) {
#if LANES == 16
    return _mm512_cmp_ps_mask((__m512) v, (__m512) t, _CMP_GE_OQ);
#elif LANES == 8
    return _mm256_movemask_ps((__m256) (v >= t));
#elif defined(__SSE2__)
    return _mm_movemask_ps((__m128) (v >= t));
#else
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++) {
        bits |= (uint32_t) (v[i] >= t[i]) << i;
    }
    return bits;
#endif
}

// lanes_max and lanes_sum go over four lanes: lane after lane is a long chain.
static inline float lanes_max(vf v) {
    float x[LANES];
    store(x, v);
    v4 m = *(const v4 *) x;
    for (int i = 4; i < LANES; i += 4) {
        const v4 o = *(const v4 *) (x + i);
        m = o > m ? o : m;
    }
    const float a = m[1] > m[0] ? m[1] : m[0], b = m[3] > m[2] ? m[3] : m[2];
    return b > a ? b : a;
}

static inline float lanes_sum(vf v) {
    float x[LANES];
    store(x, v);
    v4 s = *(const v4 *) x;
    for (int i = 4; i < LANES; i += 4) {
        s += *(const v4 *) (x + i);
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

// exp_weight is e^t for t in [lowest_exponent, 0] and 0 below and for NaN. Its
// relative error is below 2e-7: Cody and Waite's reduction and the polynomial of
// expf in S. Moshier's Cephes library.
static inline vf exp_weight(vf t) {
    const vf magic = splat(12582912.0f); // 1.5 * 2^23: adding it rounds to an integer
    const vi keep  = t >= splat(lowest_exponent);
    const vf k     = t * 1.44269504088896341f + magic;
    const vf n     = k - magic;
    vf f = t - n * 0.693359375f;
    f    = f - n * -2.12194440e-4f;
    vf p = splat(1.9875691500e-4f);
    p    = p * f + 1.3981999507e-3f;
    p    = p * f + 8.3334519073e-3f;
    p    = p * f + 4.1665795894e-2f;
    p    = p * f + 1.6666665459e-1f;
    p    = p * f + 5.0000001201e-1f;
    p    = p * (f * f) + f + 1.0f;
    // The low bits of k are the integer; added to the exponent of p they scale it.
    const vu scaled = (vu) p + ((vu) k << 23);
    return (vf) (scaled & (vu) keep);
}

static float max(const float * x) {
    vf a = splat(-__builtin_inff()), b = a, c = a, d = a;
    for (int i = 0; i < block_size; i += 4 * LANES) {
        a = larger(load(x + i), a);
        b = larger(load(x + i + LANES), b);
        c = larger(load(x + i + 2 * LANES), c);
        d = larger(load(x + i + 3 * LANES), d);
    }
    return lanes_max(larger(larger(a, b), larger(c, d)));
}

// The groups are columns, so that no lane has to cross.
static void group_max(const float * x, float * out) {
    for (int g = 0; g < block_groups; g += LANES) {
        vf m = splat(-__builtin_inff());
        for (int i = g; i < block_size; i += block_groups) {
            m = larger(load(x + i), m);
        }
        store(out + g, m);
    }
}

static void weights(const float * x, float max, float scale, float * w) {
    for (int i = 0; i < block_size; i += LANES) {
        store(w + i, exp_weight((load(x + i) - max) * scale));
    }
}

static float sum(const float * x, float max, float scale) {
    vf a{}, b{};
    for (int i = 0; i < block_size; i += 2 * LANES) {
        a += exp_weight((load(x + i) - max) * scale);
        b += exp_weight((load(x + i + LANES) - max) * scale);
    }
    return lanes_sum(a + b);
}

static int32_t collect(const float * x, float threshold, int32_t first, candidate * out) {
    candidate * const begin = out;
    const vf t = splat(threshold);
    for (int i = 0; i < block_size; i += LANES) {
        uint32_t bits = reached(load(x + i), t);
        while (bits != 0) {
            const int32_t j = i + __builtin_ctz(bits);
            *out++ = candidate{x[j], 0, first + j};
            bits &= bits - 1;
        }
    }
    return (int32_t) (out - begin);
}

static void mask(const float * x, const uint64_t * words, float * out) {
    vu lane;
    for (int i = 0; i < LANES; i++) {
        lane[i] = 1u << i;
    }
    for (int i = 0; i < block_size; i += LANES) {
        const uint32_t bits = (uint32_t) (words[i / 64] >> (i % 64));
        const vi allowed = ((bits - vu{}) & lane) != 0;
        store(out + i, allowed ? load(x + i) : splat(-__builtin_inff()));
    }
}

static void penalize(float * x, const b3_count * counts, int32_t n, const b3_sample_row & r) {
    for (; n > 0; n -= LANES, counts += LANES) {
        const int32_t len = n < LANES ? n : LANES;
        float logits[LANES] = {};
        vi answer{};
        for (int32_t i = 0; i < len; i++) {
            logits[i] = x[counts[i].id % block_size];
            answer[i] = counts[i].answer;
        }
        vf v = load(logits);
        v = v > 0 ? v / r.repetition : v * r.repetition;
        v -= __builtin_convertvector(answer, vf) * r.frequency + (answer > 0 ? splat(r.presence) : vf{});
        store(logits, v);
        for (int32_t i = 0; i < len; i++) {
            x[counts[i].id % block_size] = logits[i];
        }
    }
}
