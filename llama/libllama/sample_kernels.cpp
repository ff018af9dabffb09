#include "sample_kernels.h"

// Wide kernels need GCC's way to switch the instruction set inside a file.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define B3_WIDE_KERNELS 1
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace b3 {

#define B3_KERNELS(NAME) kernels{NAME, max, group_max, weights, sum, collect, mask, penalize}

namespace baseline {
#define LANES 4
#include "sample_kernels_body.h"
#undef LANES
static const kernels all = B3_KERNELS("baseline");
}  // namespace baseline

#ifdef B3_WIDE_KERNELS

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
namespace avx2 {
#define LANES 8
#include "sample_kernels_body.h"
#undef LANES
static const kernels all = B3_KERNELS("avx2");
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi,bmi2")
namespace avx512 {
#define LANES 16
#include "sample_kernels_body.h"
#undef LANES
static const kernels all = B3_KERNELS("avx512");
}  // namespace avx512
#pragma GCC pop_options

static bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

#endif

const kernels * find_kernels(int32_t level) {
    switch (level) {
        case 0: return &baseline::all;
#ifdef B3_WIDE_KERNELS
        case 1: return has_avx2() ? &avx2::all : nullptr;
        case 2: return has_avx512() ? &avx512::all : nullptr;
#endif
        default: return nullptr;
    }
}

const kernels & best_kernels() {
    for (int32_t level = 2;; level--) {
        if (const kernels * k = find_kernels(level)) {
            return *k;
        }
    }
}

}  // namespace b3
