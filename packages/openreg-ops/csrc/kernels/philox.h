// SPDX-License-Identifier: BSD-3-Clause
// The counter-based random number generator Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", 2011). It is a pure function of key and counter, so each thread can compute its numbers separately.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/random_steps.h"

namespace openreg::ops::raw {

// The random words of one step, one for each element.
template <class Word>
using RandomWords = std::array<Word, kElementsPerStep>;

// Returns the 128 random bits of one value of the counter. `seed` is the key. The counter has 128 bits: `step` is the
// lower half, and `subsequence` the next 32 bits.
inline RandomWords<uint32_t> philox(uint64_t seed, uint64_t step, uint32_t subsequence = 0) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  RandomWords<uint32_t> bits{static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), subsequence, 0};
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

// Returns the random words of one step. Words of 64 bits have their upper halves from subsequence 0, where words of 32
// bits are, and their lower halves from subsequence 1.
template <class Word>
RandomWords<Word> random_words(uint64_t seed, uint64_t step) {
  const RandomWords<uint32_t> upper = philox(seed, step);
  if constexpr (std::is_same_v<Word, uint32_t>) {
    return upper;
  } else {
    const RandomWords<uint32_t> lower = philox(seed, step, 1);
    RandomWords<Word> words;
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = (static_cast<Word>(upper[i]) << 32) | lower[i];
    }
    return words;
  }
}

// The word that gives one random number of a dtype: 64 bits for double, 32 for all others.
template <class Value>
using WordOf = std::conditional_t<std::is_same_v<Value, double>, uint64_t, uint32_t>;

// Returns the number that a word gives, uniform in [0, 1). The number is exact in the type Value, so that the
// conversion to Value cannot round it up to 1. The result is a double for double, else a float.
template <class Value>
auto uniform_number(WordOf<Value> word) {
  if constexpr (std::is_same_v<Value, double>) {
    return static_cast<double>(word >> 11) * 0x1p-53;
  } else {
    constexpr int kDigits = std::numeric_limits<Value>::digits;
    constexpr float kStep = 1.0F / static_cast<float>(1U << kDigits);
    return static_cast<float>(word >> (32 - kDigits)) * kStep;
  }
}

}  // namespace openreg::ops::raw
