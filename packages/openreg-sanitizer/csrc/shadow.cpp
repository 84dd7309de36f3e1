// SPDX-License-Identifier: BSD-3-Clause
#include "shadow.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace openreg::sanitizer {

namespace {

constexpr size_t kMaxAccesses = 512;  // of one allocation, and as many of former ones
constexpr size_t kMaxRuns = 1024;     // of a strided tensor whose written bytes are tracked exactly
constexpr size_t kMaxRanges = 1024;   // of written bytes in one allocation; with more, all count as written

bool is_within(const Access& inner, const Access& outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

bool is_same_tensor(const Access& one, const Access& other) {
  return one.begin == other.begin && one.end == other.end && one.layout == other.layout;
}

// If there are more than kMaxAccesses items, erases all but the last kMaxAccesses / 2, which were added last.
template <class T>
void erase_oldest(std::vector<T>& items) {
  if (items.size() > kMaxAccesses) {
    items.erase(items.begin(), items.end() - kMaxAccesses / 2);
  }
}

// Returns true if the task `earlier` happens before a task of `queue` that was enqueued later and has this clock, which
// need not include the earlier tasks of its own queue.
bool happens_before(const TaskId& earlier, uint32_t queue, const VectorClock& clock) {
  return earlier.queue == queue || clock.includes(earlier);
}

}  // namespace

Shadow::ShadowBlock* Shadow::find(uintptr_t address) {
  for (ShadowBlocks* blocks : {&blocks_, &regions_}) {
    auto next = blocks->upper_bound(address);
    if (next != blocks->begin() && (--next)->second.life.end > address) {
      return &next->second;
    }
  }
  return nullptr;
}

void Shadow::clear() {
  blocks_.clear();
  regions_.clear();
}

void Shadow::add_region(uintptr_t begin, size_t size, int device) {
  blocks_.erase(blocks_.lower_bound(begin), blocks_.lower_bound(begin + size));  // of memory from before start()
  ShadowBlock block;
  block.life = {begin, begin + size, device, {}, 0, 0};
  regions_[begin] = std::move(block);
}

void Shadow::remove_region(uintptr_t begin) {
  const auto region = regions_.find(begin);
  if (region == regions_.end()) {
    return;
  }
  blocks_.erase(blocks_.lower_bound(begin), blocks_.lower_bound(region->second.life.end));
  regions_.erase(region);
}

// Appends the former accesses of `block` that overlap [begin, end).
void Shadow::append_former_accesses(const ShadowBlock& block, uintptr_t begin, uintptr_t end,
                                    std::vector<FormerAccess>& former_accesses) {
  std::copy_if(block.former_accesses.begin(), block.former_accesses.end(), std::back_inserter(former_accesses),
               [&](const FormerAccess& former) { return former.access.begin < end && former.access.end > begin; });
}

// Removes the blocks in [begin, end), except for the parts of freed ones that lie outside. Returns their former
// accesses in the range.
std::vector<Shadow::FormerAccess> Shadow::take_range(uintptr_t begin, uintptr_t end) {
  std::vector<FormerAccess> former_accesses;
  std::vector<ShadowBlock> rests;
  const auto keep_rest = [&](const ShadowBlock& old, uintptr_t rest_begin, uintptr_t rest_end) {
    if (rest_begin >= rest_end) {
      return;
    }
    ShadowBlock& rest = rests.emplace_back();
    rest.life = old.life;
    rest.life.begin = rest_begin;
    rest.life.end = rest_end;
    rest.state = BlockState::kFreed;
    rest.is_private = old.is_private;
    append_former_accesses(old, rest_begin, rest_end, rest.former_accesses);
  };
  auto next = blocks_.upper_bound(begin);
  if (next != blocks_.begin() && std::prev(next)->second.life.end > begin) {
    --next;
  }
  while (next != blocks_.end() && next->first < end) {
    const ShadowBlock& old = next->second;
    append_former_accesses(old, begin, end, former_accesses);
    if (old.state == BlockState::kFreed) {
      keep_rest(old, old.life.begin, begin);
      keep_rest(old, end, old.life.end);
    }
    next = blocks_.erase(next);
  }
  for (ShadowBlock& rest : rests) {
    blocks_[rest.life.begin] = std::move(rest);
  }
  limit_former_accesses(former_accesses);
  return former_accesses;
}

void Shadow::allocate(const Life& life, bool is_private, bool was_written) {
  ShadowBlock block;
  block.life = life;
  block.state = BlockState::kLive;
  block.is_private = is_private;
  block.is_written = was_written;
  block.generation = ++generation_;
  block.former_accesses = take_range(life.begin, life.end);
  blocks_[life.begin] = std::move(block);
}

void Shadow::record_stream(uintptr_t address, const StreamName& stream) {
  ShadowBlock* const block = find(address);
  if (block != nullptr && block->state == BlockState::kLive) {
    block->recorded.push_back(stream);
  }
}

// Returns the clock of the tasks that are complete when the allocator reuses a block that is freed now: the host has
// waited for them, or they are tasks of recorded streams or precede those.
VectorClock Shadow::clock_at_reuse(const ShadowBlock& block) const {
  VectorClock clock = ordering_.host();
  for (const StreamName& stream : block.recorded) {
    if (const auto queue = ordering_.find_queue(stream)) {
      clock.join(ordering_.clock_after_newest(*queue));
    }
  }
  return clock;
}

// Returns true if the access happens before the next task of the queue `owner`, which is that of the stream that the
// memory was allocated for. Returns false if that stream has no queue.
bool Shadow::precedes_owner(const Access& access, std::optional<uint32_t> owner) const {
  return owner.has_value() && happens_before(access.task(), *owner, ordering_.next_clock(*owner));
}

std::vector<Access> Shadow::free(uintptr_t address, uint32_t stack) {
  ShadowBlock* const block = find(address);
  if (block == nullptr || block->state != BlockState::kLive) {
    return {};
  }
  block->state = BlockState::kFreed;
  block->life.freed = stack;
  const auto life = std::make_shared<const Life>(block->life);
  const std::optional<uint32_t> owner = ordering_.find_queue(block->life.owner);
  const VectorClock complete = clock_at_reuse(*block);
  std::erase_if(block->former_accesses,
                [&](const FormerAccess& former) { return complete.includes(former.access.task()); });
  std::vector<Access> unordered;
  for (const Access& access : block->accesses) {
    if (complete.includes(access.task())) {
      continue;
    }
    block->former_accesses.push_back({access, life});
    if (!precedes_owner(access, owner)) {
      unordered.push_back(access);
    }
  }
  block->accesses.clear();
  block->written.clear();
  block->recorded.clear();
  return unordered;
}

// Returns true if two accesses without an order are wrong: they share a byte, and one of them writes.
bool Shadow::conflict(const Access& one, const Access& other) const {
  return (one.writes || other.writes) && layouts_.overlap(one.bytes(), other.bytes());
}

// Returns true if later tasks need no comparison with `earlier`, which happens before `access`. Then `access` writes
// all of its bytes, so that a task that conflicts with `earlier` without an order conflicts with `access`, too.
bool Shadow::supersedes(const Access& access, const Access& earlier) const {
  return access.writes && layouts_.is_dense(access.layout) && is_within(earlier, access);
}

void Shadow::compare_with_former_accesses(ShadowBlock& block, const Access& access, const VectorClock& clock,
                                          std::vector<Violation>& violations) const {
  std::erase_if(block.former_accesses, [&](const FormerAccess& former) {
    if (happens_before(former.access.task(), access.queue, clock)) {
      return supersedes(access, former.access);
    }
    if (!conflict(former.access, access)) {
      return false;
    }
    violations.push_back({FindingKind::kReuse, former.access, *former.life, access, block.life});
    return true;  // once is enough
  });
}

// Compares an access with the earlier ones to the same allocation, and adds it to them.
void Shadow::compare_with_accesses(ShadowBlock& block, const Access& access, const VectorClock& clock,
                                   std::vector<Violation>& violations) const {
  bool is_added = false;
  std::erase_if(block.accesses, [&](Access& earlier) {
    if (!happens_before(earlier.task(), access.queue, clock)) {
      if (conflict(earlier, access)) {
        violations.push_back({FindingKind::kRace, earlier, block.life, access, block.life});
      }
      return false;
    }
    if (supersedes(access, earlier)) {
      return true;
    }
    if (earlier.queue == access.queue && earlier.writes == access.writes && is_same_tensor(earlier, access)) {
      earlier = access;
      is_added = true;
    }
    return false;
  });
  if (!is_added) {
    block.accesses.push_back(access);
    limit_accesses(block);
  }
}

// Forgets accesses that no later one can race with, then the oldest.
void Shadow::limit_accesses(ShadowBlock& block) const {
  if (block.accesses.size() <= kMaxAccesses) {
    return;
  }
  const VectorClock& host = ordering_.host();
  std::erase_if(block.accesses, [&](const Access& access) { return host.includes(access.task()); });
  erase_oldest(block.accesses);
}

// Removes copies, which the parts of a split block have of one access, and accesses that no later one can race with.
// Then removes the oldest if there are too many.
void Shadow::limit_former_accesses(std::vector<FormerAccess>& former_accesses) const {
  std::erase_if(former_accesses,
                [&](const FormerAccess& former) { return ordering_.host().includes(former.access.task()); });
  const auto key = [](const FormerAccess& former) {
    const Access& access = former.access;
    return std::tuple(access.ticket, access.queue, access.begin, access.end, access.layout, access.writes);
  };
  std::sort(former_accesses.begin(), former_accesses.end(),
            [&](const FormerAccess& one, const FormerAccess& other) { return key(one) < key(other); });
  const auto copies =
      std::unique(former_accesses.begin(), former_accesses.end(),
                  [&](const FormerAccess& one, const FormerAccess& other) { return key(one) == key(other); });
  former_accesses.erase(copies, former_accesses.end());
  erase_oldest(former_accesses);
}

void Shadow::mark_written(ShadowBlock& block, const Access& access) const {
  if (block.is_written) {
    return;
  }
  const bool is_exact = layouts_.visit_runs(access.bytes(), kMaxRuns, [&](uintptr_t begin, uintptr_t end) {
    block.written.add(begin, end);
    return true;
  });
  if (!is_exact) {
    block.written.add(access.begin, access.end);
  }
  const uintptr_t end = block.red_zone.end == 0 ? block.life.end : block.red_zone.begin;
  if (block.written.size() > kMaxRanges || block.written.contains(block.life.begin, end)) {
    block.is_written = true;
    block.written.clear();
  }
}

bool Shadow::is_written(const ShadowBlock& block, const Access& access) const {
  bool contains_all = true;  // also for a tensor of too many runs
  layouts_.visit_runs(access.bytes(), kMaxRuns, [&](uintptr_t begin, uintptr_t end) {
    contains_all = block.written.contains(begin, end);
    return contains_all;
  });
  return contains_all;
}

std::vector<Violation> Shadow::access(const Access& access, const VectorClock& clock) {
  std::vector<Violation> violations;
  ShadowBlock* const block = find(access.begin);
  if (block == nullptr) {
    return violations;
  }
  if (block->state == BlockState::kFreed && !block->is_private) {
    const FindingKind kind = access.is_replay ? FindingKind::kGraphInput : FindingKind::kUseAfterFree;
    violations.push_back({kind, {}, block->life, access, block->life});
  }
  if (access.uses_content && block->state == BlockState::kLive && !block->is_written && !is_written(*block, access)) {
    violations.push_back({FindingKind::kUninitialized, {}, block->life, access, block->life});
    block->is_written = true;  // once for each allocation
  }
  compare_with_former_accesses(*block, access, clock, violations);
  compare_with_accesses(*block, access, clock, violations);
  if (access.writes) {
    mark_written(*block, access);
  }
  return violations;
}

std::vector<Violation> Shadow::host_access(const Access& access) const {
  std::vector<Violation> violations;
  const ShadowBlock* const block = find(access.begin);
  if (block == nullptr) {
    return violations;
  }
  const VectorClock& host = ordering_.host();
  const FindingKind kind = access.writes ? FindingKind::kHostWrite : FindingKind::kHostRead;
  for (const Access& earlier : block->accesses) {
    if (!host.includes(earlier.task()) && conflict(earlier, access)) {
      violations.push_back({kind, earlier, block->life, access, block->life});
    }
  }
  return violations;
}

void Shadow::written_by_unknown(int device) {
  for (auto& [begin, block] : blocks_) {
    block.is_written = block.is_written || block.life.device == device;
  }
}

void Shadow::set_red_zone(const RedZone& zone) {
  if (ShadowBlock* const block = find(zone.begin)) {
    block->red_zone = zone;
  }
}

RedZone Shadow::red_zone(uintptr_t address) const {
  const ShadowBlock* const block = find(address);
  return block == nullptr ? RedZone() : block->red_zone;
}

RedZone Shadow::filled_red_zone(const Access& access, const VectorClock& clock) const {
  const ShadowBlock* const block = find(access.begin);
  if (block == nullptr || block->is_private || !happens_before(block->red_zone.fill, access.queue, clock)) {
    return {};
  }
  return block->red_zone;
}

bool Shadow::is_unused(uintptr_t address) const {
  const ShadowBlock* const block = find(address);
  if (block == nullptr) {
    return false;
  }
  const std::optional<uint32_t> owner = ordering_.find_queue(block->life.owner);
  return std::all_of(block->former_accesses.begin(), block->former_accesses.end(), [&](const FormerAccess& former) {
    return ordering_.host().includes(former.access.task()) || precedes_owner(former.access, owner);
  });
}

uint64_t Shadow::generation(uintptr_t address) const {
  const ShadowBlock* const block = find(address);
  return block == nullptr || block->is_private ? 0 : block->generation;
}

Life Shadow::life(uintptr_t address) const {
  const ShadowBlock* const block = find(address);
  return block == nullptr ? Life() : block->life;
}

size_t Shadow::size() const {
  size_t count = 0;
  for (const ShadowBlocks* blocks : {&blocks_, &regions_}) {
    for (const auto& [begin, block] : *blocks) {
      count += block.accesses.size() + block.former_accesses.size();
    }
  }
  return count;
}

}  // namespace openreg::sanitizer
