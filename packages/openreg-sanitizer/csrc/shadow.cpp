// SPDX-License-Identifier: BSD-3-Clause
#include "shadow.h"

#include <algorithm>
#include <tuple>

namespace openreg::sanitizer {

namespace {

constexpr size_t kAccesses = 512;  // of one allocation, and as many of those that had its memory before
constexpr size_t kRuns = 1024;     // of a strided tensor that are tracked one by one
constexpr size_t kRanges = 1024;   // of written bytes in one allocation; with more, all count as written

bool is_within(const Access& inner, const Access& outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

bool is_same_tensor(const Access& one, const Access& other) {
  return one.begin == other.begin && one.end == other.end && one.layout == other.layout;
}

// Adds [begin, end) to disjoint, sorted ranges.
void add_range(std::vector<std::pair<uintptr_t, uintptr_t>>& ranges, uintptr_t begin, uintptr_t end) {
  auto first = std::lower_bound(ranges.begin(), ranges.end(), begin,
                                [](const auto& range, uintptr_t value) { return range.second < value; });
  auto last = first;
  while (last != ranges.end() && last->first <= end) {
    begin = std::min(begin, last->first);
    end = std::max(end, last->second);
    ++last;
  }
  first = ranges.erase(first, last);
  ranges.emplace(first, begin, end);
}

bool has_range(const std::vector<std::pair<uintptr_t, uintptr_t>>& ranges, uintptr_t begin, uintptr_t end) {
  const auto found = std::lower_bound(ranges.begin(), ranges.end(), begin,
                                      [](const auto& range, uintptr_t value) { return range.second <= value; });
  return found != ranges.end() && found->first <= begin && found->second >= end;
}

}  // namespace

Shadow::Block* Shadow::find(uintptr_t address) {
  for (Blocks* blocks : {&blocks_, &regions_}) {
    auto next = blocks->upper_bound(address);
    if (next != blocks->begin() && (--next)->second.life.end > address) {
      return &next->second;
    }
  }
  return nullptr;
}

void Shadow::add_region(uintptr_t begin, size_t size, int device) {
  blocks_.erase(blocks_.lower_bound(begin), blocks_.lower_bound(begin + size));  // of memory from before start()
  Block block;
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

void Shadow::allocate(const Life& life, bool is_private, bool was_written) {
  Block block;
  block.life = life;
  block.state = State::kLive;
  block.is_private = is_private;
  block.is_written = was_written;
  block.generation = ++generation_;
  auto next = blocks_.upper_bound(life.begin);
  if (next != blocks_.begin() && std::prev(next)->second.life.end > life.begin) {
    --next;
  }
  std::vector<Block> rests;
  while (next != blocks_.end() && next->first < life.end) {
    Block& old = next->second;
    const auto part = [&](uintptr_t begin, uintptr_t end) {
      std::vector<Remnant> remnants;
      for (const Remnant& remnant : old.remnants) {
        if (remnant.access.begin < end && remnant.access.end > begin) {
          remnants.push_back(remnant);
        }
      }
      return remnants;
    };
    for (Remnant& remnant : part(life.begin, life.end)) {
      block.remnants.push_back(std::move(remnant));
    }
    for (const auto& [begin, end] : {std::pair(old.life.begin, life.begin), std::pair(life.end, old.life.end)}) {
      if (begin < end && old.state == State::kFreed) {
        Block rest;
        rest.life = old.life;
        rest.life.begin = begin;
        rest.life.end = end;
        rest.state = State::kFreed;
        rest.is_private = old.is_private;
        rest.remnants = part(begin, end);
        rests.push_back(std::move(rest));
      }
    }
    next = blocks_.erase(next);
  }
  limit_remnants(block.remnants);
  for (Block& rest : rests) {
    blocks_[rest.life.begin] = std::move(rest);
  }
  blocks_[life.begin] = std::move(block);
}

void Shadow::record_stream(uintptr_t address, const StreamName& stream) {
  Block* const block = find(address);
  if (block != nullptr && block->state == State::kLive) {
    block->recorded.push_back(stream);
  }
}

void Shadow::free(uintptr_t address, uint32_t stack, std::vector<Conflict>& conflicts) {
  Block* const block = find(address);
  if (block == nullptr || block->state != State::kLive) {
    return;
  }
  block->state = State::kFreed;
  block->life.freed = stack;
  const auto life = std::make_shared<const Life>(block->life);
  const int64_t owner = ordering_.find(block->life.owner);
  // The allocator reuses the memory after what the recorded streams hold now.
  VectorClock safe = ordering_.host();
  for (const StreamName& stream : block->recorded) {
    const int64_t queue = ordering_.find(stream);
    if (queue >= 0) {
      const auto index = static_cast<uint32_t>(queue);
      safe.join(ordering_.next(index));
      safe.raise(index, ordering_.newest(index));
    }
  }
  for (const Access& access : block->accesses) {
    if (access.ticket <= safe.at(access.queue)) {
      continue;
    }
    block->remnants.push_back({access, life});
    const bool is_ordered =
        owner >= 0 &&
        (access.queue == owner || access.ticket <= ordering_.next(static_cast<uint32_t>(owner)).at(access.queue));
    if (!is_ordered) {
      conflicts.push_back({FindingKind::kFreedInUse, access, *life, access, *life});
    }
  }
  std::erase_if(block->remnants,
                [&](const Remnant& remnant) { return remnant.access.ticket <= safe.at(remnant.access.queue); });
  limit_remnants(block->remnants);
  block->accesses.clear();
  block->written.clear();
  block->recorded.clear();
}

bool Shadow::overlap(const Access& one, const Access& other) const {
  return layouts_.overlap(one.begin, one.end, one.layout, other.begin, other.end, other.layout);
}

void Shadow::compare(Block& block, const Access& access, const VectorClock& clock, std::vector<Conflict>& conflicts) {
  const auto is_before = [&](const Access& earlier) {
    return earlier.queue == access.queue || earlier.ticket <= clock.at(earlier.queue);
  };
  const bool is_dense = layouts_.is_dense(access.layout);
  std::erase_if(block.remnants, [&](const Remnant& remnant) {
    const Access& earlier = remnant.access;
    if (is_before(earlier)) {
      // What comes later in this order is after the earlier access as well.
      return access.writes && is_dense && is_within(earlier, access);
    }
    if ((earlier.writes || access.writes) && overlap(earlier, access)) {
      conflicts.push_back({FindingKind::kReuse, earlier, *remnant.life, access, block.life});
      return true;  // once is enough
    }
    return false;
  });
  bool is_known = false;
  std::erase_if(block.accesses, [&](Access& earlier) {
    if (!is_before(earlier)) {
      if ((earlier.writes || access.writes) && overlap(earlier, access)) {
        conflicts.push_back({FindingKind::kRace, earlier, block.life, access, block.life});
      }
      return false;
    }
    if (access.writes && is_dense && is_within(earlier, access)) {
      return true;
    }
    if (earlier.queue == access.queue && earlier.writes == access.writes && is_same_tensor(earlier, access)) {
      is_known = true;
      earlier = access;
    }
    return false;
  });
  if (!is_known) {
    block.accesses.push_back(access);
    limit(block);
  }
}

// Forgets accesses that no later one can race with, then the oldest.
void Shadow::limit(Block& block) {
  if (block.accesses.size() <= kAccesses) {
    return;
  }
  const VectorClock& host = ordering_.host();
  std::erase_if(block.accesses, [&](const Access& access) { return access.ticket <= host.at(access.queue); });
  if (block.accesses.size() > kAccesses) {
    block.accesses.erase(block.accesses.begin(), block.accesses.begin() + kAccesses / 2);
  }
}

// Removes remnants that no later access can race with and copies of one remnant, which the pieces of a freed block
// share, then the oldest.
void Shadow::limit_remnants(std::vector<Remnant>& remnants) const {
  const VectorClock& host = ordering_.host();
  std::erase_if(remnants, [&](const Remnant& remnant) { return remnant.access.ticket <= host.at(remnant.access.queue); });
  const auto key = [](const Remnant& remnant) {
    const Access& access = remnant.access;
    return std::tuple(access.ticket, access.queue, access.begin, access.end, access.layout, access.writes);
  };
  std::sort(remnants.begin(), remnants.end(),
            [&](const Remnant& one, const Remnant& other) { return key(one) < key(other); });
  const auto copies = std::unique(remnants.begin(), remnants.end(),
                                  [&](const Remnant& one, const Remnant& other) { return key(one) == key(other); });
  remnants.erase(copies, remnants.end());
  if (remnants.size() > kAccesses) {
    remnants.erase(remnants.begin(), remnants.end() - kAccesses / 2);
  }
}

void Shadow::mark_written(Block& block, const Access& access) {
  if (block.is_written) {
    return;
  }
  const bool visited =
      layouts_.visit_runs(access.begin, access.end, access.layout, kRuns, [&](uintptr_t begin, uintptr_t end) {
        add_range(block.written, begin, end);
        return true;
      });
  if (!visited) {
    add_range(block.written, access.begin, access.end);
  }
  if (block.written.size() > kRanges) {
    block.is_written = true;
    block.written.clear();
    return;
  }
  const uintptr_t end = block.red_zone.end == 0 ? block.life.end : block.red_zone.begin;
  if (block.written.size() == 1 && block.written[0].first <= block.life.begin && block.written[0].second >= end) {
    block.is_written = true;
    block.written.clear();
  }
}

bool Shadow::is_written(const Block& block, const Access& access) const {
  bool written = true;
  layouts_.visit_runs(access.begin, access.end, access.layout, kRuns, [&](uintptr_t begin, uintptr_t end) {
    written = has_range(block.written, begin, end);
    return written;
  });
  return written;
}

void Shadow::access(const Access& access, const VectorClock& clock, bool checks_content, bool is_replay,
                    std::vector<Conflict>& conflicts) {
  Block* const block = find(access.begin);
  if (block == nullptr) {
    return;
  }
  if (block->state == State::kFreed && !block->is_private) {
    conflicts.push_back(
        {is_replay ? FindingKind::kGraphInput : FindingKind::kUseAfterFree, {}, block->life, access, block->life});
  }
  if (checks_content && access.reads && !block->is_written && block->state == State::kLive &&
      !is_written(*block, access)) {
    conflicts.push_back({FindingKind::kUninitialized, {}, block->life, access, block->life});
    block->is_written = true;  // once per allocation
  }
  compare(*block, access, clock, conflicts);
  if (access.writes) {
    mark_written(*block, access);
  }
}

void Shadow::host_access(const Access& access, std::vector<Conflict>& conflicts) {
  const Block* const block = find(access.begin);
  if (block == nullptr) {
    return;
  }
  const VectorClock& host = ordering_.host();
  for (const Access& earlier : block->accesses) {
    if (earlier.ticket > host.at(earlier.queue) && (earlier.writes || access.writes) && overlap(earlier, access)) {
      const FindingKind kind = access.writes ? FindingKind::kHostWrite : FindingKind::kHostRead;
      conflicts.push_back({kind, earlier, block->life, access, block->life});
    }
  }
}

void Shadow::set_red_zone(const RedZone& zone) {
  if (Block* const block = find(zone.begin)) {
    block->red_zone = zone;
  }
}

RedZone Shadow::red_zone(uintptr_t address) const {
  const Block* const block = find(address);
  return block == nullptr ? RedZone() : block->red_zone;
}

RedZone Shadow::red_zone(const Access& access, const VectorClock& clock) const {
  const Block* const block = find(access.begin);
  if (block == nullptr || block->red_zone.end == 0 || block->is_private) {
    return {};
  }
  const RedZone& zone = block->red_zone;
  return zone.queue == access.queue || zone.ticket <= clock.at(zone.queue) ? zone : RedZone();
}

bool Shadow::is_unused(uintptr_t address) const {
  const Block* const block = find(address);
  if (block == nullptr) {
    return false;
  }
  const int64_t owner = ordering_.find(block->life.owner);
  return std::all_of(block->remnants.begin(), block->remnants.end(), [&](const Remnant& remnant) {
    const Access& access = remnant.access;
    return access.queue == owner || access.ticket <= ordering_.host().at(access.queue) ||
           (owner >= 0 && access.ticket <= ordering_.next(static_cast<uint32_t>(owner)).at(access.queue));
  });
}

uint64_t Shadow::generation(uintptr_t address) const {
  const Block* const block = find(address);
  return block == nullptr || block->is_private ? 0 : block->generation;
}

Life Shadow::life(uintptr_t address) const {
  const Block* const block = find(address);
  return block == nullptr ? Life() : block->life;
}

void Shadow::written_by_unknown(int device) {
  for (auto& [begin, block] : blocks_) {
    block.is_written = block.is_written || block.life.device == device;
  }
}

size_t Shadow::size() const {
  size_t count = 0;
  for (const Blocks* blocks : {&blocks_, &regions_}) {
    for (const auto& [begin, block] : *blocks) {
      count += block.accesses.size() + block.remnants.size();
    }
  }
  return count;
}

}  // namespace openreg::sanitizer
