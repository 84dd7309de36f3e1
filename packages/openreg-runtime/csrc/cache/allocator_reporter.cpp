// SPDX-License-Identifier: BSD-3-Clause
#include "cache/allocator_reporter.h"

namespace openreg::runtime {

MemoryEvent AllocatorReporter::make_event(MemoryEventKind kind) const {
  MemoryEvent event{};
  event.kind = kind;
  event.device = device_;
  event.allocated_bytes = statistics.allocated_bytes.current();
  event.reserved_bytes = statistics.reserved_bytes.current();
  return event;
}

void AllocatorReporter::report_block(MemoryEventKind kind, const Block& block, StreamKey other) {
  MemoryEvent event = make_event(kind);
  event.address = block.address;
  event.size = block.size;
  event.requested = block.requested;
  event.stream = block.stream;
  event.other_device = other.device;
  event.other_stream = other.id;
  event.pool = block.segment->pool->id();
  observers.notify(event);
}

void AllocatorReporter::report_segment(MemoryEventKind kind, const Segment& segment) {
  MemoryEvent event = make_event(kind);
  event.address = segment.address;
  event.size = segment.size;
  event.requested = segment.size;
  event.stream = segment.first->stream;
  event.pool = segment.pool->id();
  observers.notify(event);
}

void AllocatorReporter::out_of_memory(const AllocParams& request, size_t free) {
  ++statistics.out_of_memory;
  if (!observers.want(MemoryEventKind::kOutOfMemory)) {
    return;
  }
  MemoryEvent event = make_event(MemoryEventKind::kOutOfMemory);
  event.size = request.size;
  event.requested = request.requested;
  event.stream = request.stream;
  event.free_bytes = free;
  observers.notify(event);
}

}  // namespace openreg::runtime
