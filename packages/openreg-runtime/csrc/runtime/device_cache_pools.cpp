// SPDX-License-Identifier: BSD-3-Clause
// Private pools of one device's cache: which allocations come from them, and how long they live.
#include <algorithm>

#include "device_cache.h"
#include "openreg/runtime/device.h"
#include "size_class.h"

namespace openreg::runtime {

namespace {

std::string describe(c10::MempoolId_t id, c10::DeviceIndex index) {
  return c10::str("memory pool (", id.first, ", ", id.second, ") of openreg:", static_cast<int>(index));
}

}  // namespace

void DeviceCache::begin_route(PoolRoute route) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PrivatePool& pool = private_pool(route.id);
  ++pool.users;
  ++pool.routes;
  pool.is_replayed = pool.is_replayed || route.for_capture;
  captures_ += route.for_capture ? 1 : 0;
  routes_.push_back(std::move(route));
}

void DeviceCache::end_route(c10::MempoolId_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(routes_.rbegin(), routes_.rend(), [&](const auto& route) { return route.id == id; });
  TORCH_CHECK(found != routes_.rend(), "no allocations are routed to the ", describe(id, index_),
              "; end_allocate_to_pool() ends what begin_allocate_to_pool() began, once");
  captures_ -= found->for_capture ? 1 : 0;
  routes_.erase(std::next(found).base());
  PrivatePool& pool = private_pool(id);
  --pool.routes;
  drop_if_unused(pool);
}

void DeviceCache::retain_pool(c10::MempoolId_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++private_pool(id).users;
}

void DeviceCache::release_pool(c10::MempoolId_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  TORCH_CHECK(found != private_pools_.end() && found->second.users > 0, "the ", describe(id, index_),
              " has no user to release; release it once for each retain_pool() or begin_allocate_to_pool()");
  --found->second.users;
  drop_if_unused(found->second);
}

// Where an allocation for a stream comes from.
BlockPool& DeviceCache::pool_for(size_t size, c10::StreamId stream) {
  const bool small = is_small(size);
  if (C10_LIKELY(routes_.empty())) {
    return small ? small_ : large_;
  }
  const c10::Stream current(c10::Stream::UNSAFE, c10::Device(kDeviceType, index_), stream);
  for (const PoolRoute& route : routes_) {
    if (route.accepts(current)) {
      PrivatePool& pool = private_pool(route.id);
      return small ? pool.small : pool.large;
    }
  }
  return small ? small_ : large_;
}

PrivatePool& DeviceCache::private_pool(c10::MempoolId_t id) {
  TORCH_CHECK_VALUE(id != (c10::MempoolId_t{0, 0}),
                    "memory pool (0, 0) names the ordinary cache of openreg:", static_cast<int>(index_),
                    "; make_pool_id() gives ids for private pools");
  return private_pools_.try_emplace(id, id).first->second;
}

void DeviceCache::drop_if_unused(PrivatePool& pool) {
  if (pool.users == 0 && pool.routes == 0 && pool.segments == 0) {
    private_pools_.erase(c10::MempoolId_t(pool.id));
  }
}

}  // namespace openreg::runtime
