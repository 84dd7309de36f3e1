// SPDX-License-Identifier: BSD-3-Clause
#include "cache/pools.h"

#include <algorithm>
#include <iterator>

namespace openreg::runtime {

BlockPool& Pools::routed(BlockPool& ordinary, int64_t stream) {
  for (const PoolFilter& route : routes_) {
    if (route.accepts(stream)) {
      PrivatePool& pool = private_pool(route.id);
      return ordinary.is_small ? pool.small : pool.large;
    }
  }
  return ordinary;
}

void Pools::begin_pool_filter(PoolFilter route) {
  PrivatePool& pool = private_pool(route.id);
  ++pool.users;
  ++pool.routes;
  pool.used_by_graph = pool.used_by_graph || route.for_capture;
  captures_ += route.for_capture ? 1 : 0;
  routes_.push_back(std::move(route));
}

bool Pools::end_pool_filter(PoolId id) {
  const auto found = std::find_if(routes_.rbegin(), routes_.rend(), [&](const auto& route) { return route.id == id; });
  if (found == routes_.rend()) {
    return false;
  }
  captures_ -= found->for_capture ? 1 : 0;
  routes_.erase(std::next(found).base());
  PrivatePool& pool = private_pool(id);
  --pool.routes;
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
  if (pool.users == 0 && pool.routes == 0 && pool.segments == 0) {
    private_.erase(PoolId(pool.id));
  }
}

}  // namespace openreg::runtime
