// SPDX-License-Identifier: BSD-3-Clause
#include "cache/segments.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace openreg::runtime {

Block* Segments::add(BlockPool& pool, const AllocParams& request) {
  Block* block = take(pool, segment_size_for(request.size, provider_.settings()), request);
  return block != nullptr ? block : take(pool, request.size, request);
}

Block* Segments::take(BlockPool& pool, size_t size, const AllocParams& request) {
  if (size > limit() - std::min(limit(), reserved())) {
    return nullptr;
  }
  char* address = provider_.allocate(size);
  if (address == nullptr) {
    return nullptr;
  }
  Segment& segment = *segments_.emplace(address, std::make_unique<Segment>()).first->second;
  segment.address = address;
  segment.size = size;
  segment.pool = &pool;
  segment.is_oversize = size >= request.max_split_size;
  if (pool.owner != nullptr) {
    ++pool.owner->segments;
  }
  blocks_.add_segment(segment, request.stream);
  reporter_.segment_allocated(segment);
  return segment.first;
}

void Segments::release(Segment& segment) {
  reporter_.segment_released(segment);
  blocks_.remove_segment(segment);
  if (segment.pool->owner != nullptr) {
    --segment.pool->owner->segments;
  }
  char* const address = segment.address;
  segments_.erase(address);
  provider_.release(address);
}

void Segments::release_free(BlockPool& pool) {
  std::vector<Segment*> whole;
  for (const Block* block : pool.free) {
    if (block->is_whole_segment()) {
      whole.push_back(block->segment);
    }
  }
  for (Segment* segment : whole) {
    release(*segment);
  }
}

size_t Segments::limit() {
  const double fraction = provider_.settings().memory_fraction;
  if (fraction >= 1) {
    return kUnlimited;
  }
  return static_cast<size_t>(fraction * static_cast<double>(provider_.memory_info().total));
}

size_t Segments::garbage() {
  const double threshold = provider_.settings().garbage_collection_threshold;
  if (threshold <= 0) {
    return 0;
  }
  const size_t most = std::min(limit(), provider_.memory_info().total);
  const auto tolerated = static_cast<size_t>(threshold * static_cast<double>(most));
  return reserved() > tolerated ? reserved() - tolerated : 0;
}

}  // namespace openreg::runtime
