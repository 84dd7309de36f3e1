// SPDX-License-Identifier: BSD-3-Clause
// The pools of one device, and which allocations come from which.
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

// The free blocks of one size class.
struct BlockPool {
  BlockPool(bool small, PrivatePool* of) : is_small(small), owner(of) {}
  PoolId id() const;

  const bool is_small;
  PrivatePool* const owner;  // null: the device's ordinary cache
  FreeBlocks free;
  size_t searches = 0;  // for a free block; the clock that tells how long a block has lain unused
};

// Memory that serves only the allocations routed to it.
struct PrivatePool {
  explicit PrivatePool(PoolId name) : id(name) {}
  // Whether free segments may go back to the driver.
  bool may_shrink() const { return users == 0 || !used_by_graph; }

  const PoolId id;
  BlockPool small{true, this};
  BlockPool large{false, this};
  int users = 0;               // without users nothing is allocated from it
  int routes = 0;              // that lead to it now
  size_t segments = 0;         // that it holds
  bool used_by_graph = false;  // a capture used it, so a replay may write to its free blocks
};

inline PoolId BlockPool::id() const {
  return owner == nullptr ? kDefaultPool : owner->id;
}

// Sends allocations to a pool while `accepts` says so of the stream that is current where they are made.
struct PoolFilter {
  PoolId id;
  std::function<bool(int64_t stream)> accepts;
  bool for_capture;
};

// Not thread-safe. Ids are those of private pools, not kDefaultPool.
class Pools {
 public:
  // Where an allocation for a stream comes from.
  BlockPool& pool_for(size_t size, int64_t stream) {
    BlockPool& ordinary = is_small(size) ? small_ : large_;
    return routes_.empty() ? ordinary : routed(ordinary, stream);
  }
  BlockPool& small() { return small_; }
  BlockPool& large() { return large_; }

  // One more user and one more route of the pool, which is made if there is none.
  void begin_pool_filter(PoolFilter route);
  // Ends the latest route to the pool. False if there is none.
  bool end_pool_filter(PoolId id);
  void retain(PoolId id);
  // False if the pool has no user.
  bool release(PoolId id);

  // Whether work of an accepted stream is recorded: then the device must not be waited for.
  bool is_capturing() const { return captures_ > 0; }

  // Calls `visit` with each pool whose free segments may go: that of the id, or, for kDefaultPool, the ordinary cache
  // and all pools without users. Forgets private pools that are empty then.
  void shrink(PoolId id, const std::function<void(BlockPool&)>& visit);

 private:
  BlockPool& routed(BlockPool& ordinary, int64_t stream);
  PrivatePool& private_pool(PoolId id) { return private_.try_emplace(id, id).first->second; }
  void drop_if_unused(PrivatePool& pool);

  BlockPool small_{true, nullptr};
  BlockPool large_{false, nullptr};
  std::map<PoolId, PrivatePool> private_;
  std::vector<PoolFilter> routes_;
  int captures_ = 0;  // routes for captures
};

}  // namespace openreg::runtime
