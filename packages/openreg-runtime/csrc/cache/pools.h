// SPDX-License-Identifier: BSD-3-Clause
// The pools of free blocks of one device: the default pool, which serves ordinary allocations, and private pools, which
// serve those of a graph or a MemPool. Also the selection of a pool for an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cache/block.h"
#include "cache/free_blocks.h"
#include "cache/size_policy.h"

namespace openreg::runtime {

using PoolId = std::pair<unsigned long long, unsigned long long>;  // c10::MempoolId_t
inline constexpr PoolId kDefaultPool{0, 0};

struct PrivatePool;

// The free blocks of one size class of a pool. There are two classes, small and large blocks (see size_policy.h).
struct BlockPool {
  BlockPool(bool small, PrivatePool* of) : is_small(small), owner(of) {}
  // Returns kDefaultPool or the id of the private pool.
  PoolId id() const;

  const bool is_small;
  PrivatePool* const owner;  // null in the default pool
  FreeBlocks free;
  size_t searches = 0;  // number of searches for a free block, which serves as the clock of Block::freed_at
};

// A pool that serves only allocations that one of its filters (PoolFilter) accepts.
struct PrivatePool {
  explicit PrivatePool(PoolId name) : id(name) {}
  // Returns true if free segments may be released to the driver.
  bool may_shrink() const { return users == 0 || !used_by_graph; }

  const PoolId id;
  BlockPool small{true, this};
  BlockPool large{false, this};
  int users = 0;               // number of graphs and MemPool objects that keep it
  int active_filters = 0;      // number of filters that direct allocations to it
  size_t segments = 0;         // number of segments
  bool used_by_graph = false;  // a capture used it, so a replay may write to its free blocks
};

inline PoolId BlockPool::id() const {
  return owner == nullptr ? kDefaultPool : owner->id;
}

// A filter that directs an allocation to pool `id` if `accepts` returns true for the stream that is current at the
// allocation. `for_capture` is true if the accepted streams are capturing.
struct PoolFilter {
  PoolId id;
  std::function<bool(int64_t stream)> accepts;
  bool for_capture;
};

// The pools of one device. Not thread-safe. Only shrink() accepts kDefaultPool as an id. The other functions take that
// of a private pool.
class Pools {
 public:
  // Returns the pool that serves a block of `size` bytes for `stream`: that of the first filter that accepts the
  // stream, otherwise the default pool.
  BlockPool& pool_for(size_t size, int64_t stream) {
    BlockPool& ordinary = is_small(size) ? small_ : large_;
    return filters_.empty() ? ordinary : filtered_pool(ordinary, stream);
  }
  BlockPool& large() { return large_; }

  // Activates a filter and adds one user to its pool. Creates the pool if there is none.
  void begin_pool_filter(PoolFilter filter);
  // Ends the latest filter of the pool. The user that begin_pool_filter() added remains until release(). Returns false
  // if no filter of the pool is active.
  bool end_pool_filter(PoolId id);
  // Adds one user to the pool. Creates the pool if there is none.
  void retain(PoolId id);
  // Removes one user from the pool. Returns false if it has none.
  bool release(PoolId id);

  // Returns true while a filter for a capture is active. The allocator must not synchronize the device then.
  bool is_capturing() const { return captures_ > 0; }

  // Calls `visit` with each BlockPool whose free segments may be released: those of private pool `id` if it
  // may_shrink(), or, for kDefaultPool, those of the default pool and of all private pools without users. Then removes
  // private pools without users, filters or segments.
  void shrink(PoolId id, const std::function<void(BlockPool&)>& visit);

 private:
  // Same as `pool_for()`, except that `ordinary` is the part of the default pool that serves blocks of that size.
  BlockPool& filtered_pool(BlockPool& ordinary, int64_t stream);
  // Returns the private pool with this id. Creates it if there is none.
  PrivatePool& private_pool(PoolId id) { return private_.try_emplace(id, id).first->second; }
  // Removes a private pool that has no users, filters or segments.
  void drop_if_unused(PrivatePool& pool);

  BlockPool small_{true, nullptr};
  BlockPool large_{false, nullptr};
  std::map<PoolId, PrivatePool> private_;
  std::vector<PoolFilter> filters_;
  int captures_ = 0;  // number of active filters for captures
};

}  // namespace openreg::runtime
