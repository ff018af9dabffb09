// Random numbers that are a function of their place alone.
#pragma once

#include <cstdint>

namespace b3 {

// philox is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011): ten rounds over a 128-bit counter.
inline void philox(uint32_t x[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t) 0xD2511F53 * x[0];
        const uint64_t b = (uint64_t) 0xCD9E8D57 * x[2];
        const uint32_t y[4] = {
            (uint32_t) (b >> 32) ^ x[1] ^ key0, (uint32_t) b,
            (uint32_t) (a >> 32) ^ x[3] ^ key1, (uint32_t) a,
        };
        x[0] = y[0], x[1] = y[1], x[2] = y[2], x[3] = y[3];
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
}

// uniform is the random number of a seed's step, in [0, 1) with 53 bits.
inline double uniform(uint64_t seed, uint64_t step) {
    uint32_t x[4] = {(uint32_t) step, (uint32_t) (step >> 32), 0, 0};
    philox(x, (uint32_t) seed, (uint32_t) (seed >> 32));
    const uint64_t bits = (uint64_t) x[1] << 32 | x[0];
    return (double) (bits >> 11) * 0x1p-53;
}

}  // namespace b3
