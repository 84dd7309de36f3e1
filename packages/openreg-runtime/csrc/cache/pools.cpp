// SPDX-License-Identifier: BSD-3-Clause
#include "cache/pools.h"

#include <algorithm>
#include <iterator>

namespace openreg::runtime {

BlockPool& Pools::filtered_pool(BlockPool& ordinary, int64_t stream) {
  for (const PoolFilter& filter : filters_) {
    if (filter.accepts(stream)) {
      PrivatePool& pool = private_pool(filter.id);
      return ordinary.is_small ? pool.small : pool.large;
    }
  }
  return ordinary;
}

void Pools::begin_pool_filter(PoolFilter filter) {
  PrivatePool& pool = private_pool(filter.id);
  ++pool.users;
  ++pool.active_filters;
  pool.used_by_graph = pool.used_by_graph || filter.for_capture;
  captures_ += filter.for_capture ? 1 : 0;
  filters_.push_back(std::move(filter));
}

bool Pools::end_pool_filter(PoolId id) {
  const auto found =
      std::find_if(filters_.rbegin(), filters_.rend(), [&](const auto& filter) { return filter.id == id; });
  if (found == filters_.rend()) {
    return false;
  }
  captures_ -= found->for_capture ? 1 : 0;
  filters_.erase(std::next(found).base());
  PrivatePool& pool = private_pool(id);
  --pool.active_filters;
  drop_if_unused(pool);
  return true;
}

void Pools::retain(PoolId id) {
  ++private_pool(id).users;
}

bool Pools::release(PoolId id) {
  const auto found = private_.find(id);
  if (found == private_.end() || found->second.users == 0) {
    return false;
  }
  --found->second.users;
  drop_if_unused(found->second);
  return true;
}

void Pools::shrink(PoolId id, const std::function<void(BlockPool&)>& visit) {
  const bool all = id == kDefaultPool;
  if (all) {
    visit(small_);
    visit(large_);
  }
  for (auto it = private_.begin(); it != private_.end();) {
    PrivatePool& pool = (it++)->second;  // drop_if_unused() may erase it
    if (all ? pool.users == 0 : pool.id == id && pool.may_shrink()) {
      visit(pool.small);
      visit(pool.large);
      drop_if_unused(pool);
    }
  }
}

void Pools::drop_if_unused(PrivatePool& pool) {
  if (pool.users == 0 && pool.active_filters == 0 && pool.segments == 0) {
    private_.erase(PoolId(pool.id));
  }
}

}  // namespace openreg::runtime
