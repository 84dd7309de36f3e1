// SPDX-License-Identifier: BSD-3-Clause
// Statistics that are kept as a whole and per size class.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "block.h"

namespace openreg::runtime {

using c10::CachingAllocator::StatArray;

inline constexpr size_t kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

inline c10::CachingAllocator::StatTypes stat_types(const BlockPool& pool) {
  return {true, pool.is_small, !pool.is_small};  // aggregate, small pool, large pool
}

inline void add(StatArray& stat, const BlockPool& pool, size_t amount) {
  c10::CachingAllocator::for_each_selected_stat_type(stat_types(pool),
                                                     [&](size_t type) { stat[type].increase(amount); });
}

inline void subtract(StatArray& stat, const BlockPool& pool, size_t amount) {
  c10::CachingAllocator::for_each_selected_stat_type(stat_types(pool),
                                                     [&](size_t type) { stat[type].decrease(amount); });
}

}  // namespace openreg::runtime
