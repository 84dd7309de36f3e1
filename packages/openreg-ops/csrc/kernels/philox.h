// SPDX-License-Identifier: BSD-3-Clause
// The counter-based random number generator Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", 2011). It is a pure function of key and counter, so each thread can compute its numbers separately.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace openreg::ops::raw {

// The result of the generator for one value of the counter: 128 random bits.
using RandomBits = std::array<uint32_t, 4>;

// Returns the random bits of one value of the counter. `seed` is the key. The counter has 128 bits, of which the upper
// half is zero here.
inline RandomBits philox(uint64_t seed, uint64_t counter) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  RandomBits bits{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
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

// Returns word `i` of the two 64-bit words of the bits.
inline uint64_t long_word(const RandomBits& bits, size_t i) {
  return (static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1];
}

// The number of random numbers of type Value that the bits of one counter value give. A double takes 64 bits, all other
// types take 32.
template <class Value>
constexpr int kValuesPerCounter = std::is_same_v<Value, double> ? 2 : 4;

// Returns number `i` from the bits, uniform in [0, 1). The number is exact in the type Value, so that the conversion to
// Value cannot round it up to 1. The result is a double for double, else a float.
template <class Value>
auto uniform_number(const RandomBits& bits, size_t i) {
  if constexpr (std::is_same_v<Value, double>) {
    return static_cast<double>(long_word(bits, i) >> 11) * 0x1p-53;
  } else {
    constexpr int kDigits = std::numeric_limits<Value>::digits;
    constexpr float kStep = 1.0F / static_cast<float>(1U << kDigits);
    return static_cast<float>(bits[i] >> (32 - kDigits)) * kStep;
  }
}

}  // namespace openreg::ops::raw
