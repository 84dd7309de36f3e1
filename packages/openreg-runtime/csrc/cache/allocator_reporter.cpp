// SPDX-License-Identifier: BSD-3-Clause
#include "recorder.h"

namespace openreg::runtime {

MemoryEvent Recorder::make_event(MemoryEventKind kind) const {
  MemoryEvent event{};
  event.kind = kind;
  event.device = device_;
  event.allocated_bytes = statistics.allocated_bytes.current();
  event.reserved_bytes = statistics.reserved_bytes.current();
  return event;
}

void Recorder::tell_block(MemoryEventKind kind, const Block& block, StreamKey other) {
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

void Recorder::tell_segment(MemoryEventKind kind, const Segment& segment) {
  MemoryEvent event = make_event(kind);
  event.address = segment.address;
  event.size = segment.size;
  event.requested = segment.size;
  event.stream = segment.first->stream;
  event.pool = segment.pool->id();
  observers.notify(event);
}

void Recorder::out_of_memory(const Request& request, size_t free) {
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
