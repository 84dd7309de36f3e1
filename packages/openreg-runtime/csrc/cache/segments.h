// SPDX-License-Identifier: BSD-3-Clause
// The segments of one device: taken from the driver and given back, within the limit of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "backend.h"
#include "block.h"
#include "block_list.h"
#include "pools.h"
#include "recorder.h"
#include "size_policy.h"

namespace openreg::runtime {

// Not thread-safe.
class Segments {
 public:
  Segments(AllocatorBackend& backend, Recorder& recorder, BlockList& blocks)
      : backend_(backend), recorder_(recorder), blocks_(blocks) {}

  // A free block of a new segment: of the usual size for a request, or, near the end of the capacity, of that which it
  // fits into exactly. Null when the device or the limit has no room for it.
  Block* add(BlockPool& pool, const Request& request);
  // Gives a segment back that is one free block.
  void release(Segment& segment);
  // Gives all such segments of a pool back.
  void release_free(BlockPool& pool);

  // Bytes that may be held: per_process_memory_fraction.
  size_t limit();
  // Bytes above garbage_collection_threshold, which is a part of what may be held.
  size_t garbage();

  // By address.
  const std::map<char*, std::unique_ptr<Segment>>& all() const { return segments_; }

 private:
  Block* take(BlockPool& pool, size_t size, const Request& request);
  size_t reserved() const { return recorder_.statistics.reserved_bytes.current(); }

  AllocatorBackend& backend_;
  Recorder& recorder_;
  BlockList& blocks_;
  std::map<char*, std::unique_ptr<Segment>> segments_;
};

}  // namespace openreg::runtime
