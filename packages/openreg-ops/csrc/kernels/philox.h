// SPDX-License-Identifier: BSD-3-Clause
// The counter-based random numbers Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", 2011): a pure function of key and counter, so that every thread computes its own numbers.
#pragma once

#include <array>
#include <cstdint>

namespace openreg::ops::raw {

// The 128 bits that belong to a counter; `seed` is the key. The upper half of the counter is zero here.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  std::array<uint32_t, 4> bits{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * bits[0];
    const uint64_t product1 = kMultiplier1 * bits[2];
    bits = {static_cast<uint32_t>(product1 >> 32) ^ bits[1] ^ key0, static_cast<uint32_t>(product1),
            static_cast<uint32_t>(product0 >> 32) ^ bits[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return bits;
}

}  // namespace openreg::ops::raw
