// SPDX-License-Identifier: BSD-3-Clause
// Tests of each part of the runtime's memory code alone, on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/allocated_blocks.h"
#include "cache/free_blocks.h"
#include "cache/import_cache.h"
#include "fake_device.h"
#include "openreg/runtime/launch_memory.h"

namespace memory_test {

inline char* address_of(uintptr_t number) {
  return reinterpret_cast<char*>(number);
}

inline void best_fit_is_the_smallest_block_of_the_stream_at_the_lowest_address() {
  constexpr size_t kSizes[] = {4096, 512, 1024, 1024};
  std::vector<runtime::Block> blocks(5);
  runtime::FreeBlocks free;
  for (size_t i = 0; i < 4; ++i) {
    blocks[i].address = address_of(0x10000 - 0x1000 * i);
    blocks[i].size = kSizes[i];
    blocks[i].stream = 7;
    free.insert(blocks[i]);
  }
  blocks[4].address = address_of(0x40000);
  blocks[4].size = 600;
  blocks[4].stream = 8;
  free.insert(blocks[4]);
  CHECK(free.best_fit(7, 513) == &blocks[3] && free.best_fit(7, 512) == &blocks[1]);
  CHECK(free.best_fit(7, 1025) == &blocks[0] && free.best_fit(7, 4097) == nullptr);
  CHECK(free.best_fit(8, 1) == &blocks[4] && free.best_fit(6, 1) == nullptr);
  free.resize(blocks[0], address_of(0x11000), 1024);  // from the greatest to the last of three equal ones
  CHECK(free.best_fit(7, 1000) == &blocks[3]);
  free.erase(blocks[3]);
  CHECK(free.best_fit(7, 1000) == &blocks[2]);
  free.resize(blocks[1], address_of(0x8000), 8192);  // from the smallest to the greatest
  CHECK(free.best_fit(7, 1) == &blocks[2] && free.best_fit(7, 2000) == &blocks[1]);
  free.insert(blocks[3]);
  CHECK(free.best_fit(7, 1) == &blocks[3] && free.size() == 5);
}

inline void allocated_blocks_are_found_by_address_however_many() {
  std::vector<runtime::Block> blocks(5000);
  runtime::AllocatedBlocks table;
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].address = address_of(0x100000 + 512 * i);
    table.insert(blocks[i]);
  }
  for (runtime::Block& block : blocks) {
    CHECK(table.find(block.address) == &block && table.find(block.address + 1) == nullptr);
  }
  for (size_t i = 0; i < blocks.size(); i += 2) {
    CHECK(table.take(blocks[i].address) == &blocks[i] && table.take(blocks[i].address) == nullptr);
  }
  CHECK(table.size() == blocks.size() / 2 && table.find(blocks[1].address) == &blocks[1]);
}

inline void blocks_are_cut_and_joined() {
  FakeDevice device(64 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  char* a = allocate(cache, 1000);
  char* b = allocate(cache, 3000);
  char* c = allocate(cache, 10);
  CHECK(b == a + 1024 && c == b + 3072);
  check_segments(cache);
  CHECK(cache.release(a) && cache.release(c));  // c joins what is free above it
  check_segments(cache);
  CHECK(allocate(cache, 900) == a);  // the best fit, not the greatest
  CHECK(cache.release(a) && cache.release(b) && !cache.release(b));
  check_segments(cache);
  cache.inspect([](const auto& segments, const runtime::Statistics& statistics) {
    CHECK(segments.size() == 1 && segments.begin()->second->first->is_whole_segment());
    CHECK(statistics.inactive_split.current() == 0);
    CHECK(statistics.allocation.peak == 3 && statistics.allocation.small().freed() == 4);
  });
  CHECK(cache.empty() && device.used() == 0);
}

inline void a_block_waits_for_the_streams_that_use_it() {
  FakeDevice device(64 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  char* a = allocate(cache, 2048);
  cache.record_stream(a, {0, 0});  // its own
  CHECK(cache.release(a) && allocate(cache, 2048) == a);
  cache.record_stream(a, {1, 0});
  cache.record_stream(a, {0, 5});
  CHECK(cache.release(a));
  char* other = allocate(cache, 2048);
  CHECK(other != a);
  check_segments(cache);
  device.finish_work();
  CHECK(allocate(cache, 2048) == a);
  CHECK(cache.release(a) && cache.release(other) && cache.empty() && device.used() == 0);
}

inline void everything_is_tried_before_memory_runs_out() {
  FakeDevice device(8 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  char* small = allocate(cache, 100);
  CHECK(cache.release(small));              // 2 MiB stay cached
  char* large = allocate(cache, 7 * kMiB);  // for which they are given back
  CHECK(large != nullptr && device.waits == 1);
  runtime::OomReport failure;
  CHECK(cache.allocate(request_of(2 * kMiB), failure) == nullptr);
  CHECK(failure.device.total == 8 * kMiB && failure.allocated == 7 * kMiB && failure.limit == runtime::kUnlimited);
  cache.record_stream(large, {0, 3});
  CHECK(cache.release(large));
  CHECK(allocate(cache, 7 * kMiB) == large);  // waits for stream 3
  CHECK(cache.release(large) && cache.empty() && device.used() == 0);
  check_segments(cache);
}

inline void the_limit_and_the_garbage_threshold_hold() {
  FakeDevice device(100 * kMiB);
  device.segment_settings.memory_fraction = 0.5;
  device.segment_settings.garbage_collection_threshold = 0.5;
  runtime::DeviceCachingAllocator cache(0, device);
  CHECK(allocate(cache, 51 * kMiB) == nullptr);
  char* first = allocate(cache, 20 * kMiB);
  char* second = allocate(cache, 14 * kMiB);
  CHECK(cache.release(first));
  char* third = allocate(cache, 22 * kMiB);  // above the threshold: the unused segment goes first
  CHECK(third != nullptr && device.used() == 36 * kMiB);
  CHECK(cache.release(second) && cache.release(third) && cache.empty() && device.used() == 0);
}

inline void oversize_blocks_serve_only_requests_like_themselves() {
  FakeDevice device(100 * kMiB);
  device.segment_settings.max_non_split_rounding = 4 * kMiB;
  runtime::DeviceCachingAllocator cache(0, device);
  runtime::AllocParams request = request_of(60 * kMiB);
  request.max_split_size = 32 * kMiB;
  runtime::OomReport failure;
  void* large = cache.allocate(request, failure);
  CHECK(large != nullptr && cache.release(large));
  runtime::AllocParams smaller = request_of(12 * kMiB);
  smaller.max_split_size = 32 * kMiB;
  void* other = cache.allocate(smaller, failure);
  CHECK(other != nullptr && other != large && device.used() == 72 * kMiB);
  request.size = request.requested = 40 * kMiB;  // the cached block exceeds it by too much and goes for it
  CHECK(cache.allocate(request, failure) != nullptr && device.used() == 52 * kMiB);
  check_segments(cache);
}

inline void private_pools_keep_their_memory() {
  constexpr runtime::PoolId kPool{3, 0};
  FakeDevice device(64 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  char* ordinary = allocate(cache, 1000, 4);
  cache.begin_pool_filter({kPool, [](int64_t stream) { return stream == 4; }, true});
  CHECK(!cache.empty());  // a capture is under way
  char* inside = allocate(cache, 1000, 4);
  char* beside = allocate(cache, 1000, 5);
  CHECK(inside != ordinary + 1024 && beside != inside + 1024);
  cache.record_stream(inside, {0, 9});
  CHECK(cache.release(inside));
  CHECK(allocate(cache, 1000, 4) == inside + 1024);  // kept back until the capture ends
  CHECK(cache.end_pool_filter(kPool) && !cache.end_pool_filter(kPool));
  device.finish_work();
  CHECK(cache.release(inside + 1024) && cache.release(ordinary) && cache.release(beside));
  CHECK(cache.empty() && device.used() == 2 * kMiB);  // a replay may write to it
  CHECK(cache.release_pool(kPool) && !cache.release_pool(kPool));
  CHECK(cache.empty() && device.used() == 0);
  check_segments(cache);
}

inline void emptying_frees_what_a_capture_kept_back() {
  constexpr runtime::PoolId kPool{3, 0};
  FakeDevice device(64 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  char* block = allocate(cache, 1000);
  cache.record_stream(block, {0, 9});
  cache.begin_pool_filter({kPool, [](int64_t) { return false; }, true});
  CHECK(cache.release(block) && cache.end_pool_filter(kPool) && cache.release_pool(kPool));
  CHECK(cache.empty() && device.used() == 0);
}

inline void observers_get_what_they_asked_for() {
  using Kind = runtime::MemoryEventKind;
  FakeDevice device(4 * kMiB);
  runtime::DeviceCachingAllocator cache(2, device);
  std::vector<Kind> all;
  std::vector<Kind> some;
  const auto note = [&](std::vector<Kind>& kinds) {
    return [&kinds](const runtime::MemoryEvent& event) {
      CHECK(event.device == 2 && runtime::MemoryObserverList::is_notifying());
      kinds.push_back(event.kind);
    };
  };
  CHECK(!runtime::MemoryObserverList::exist());
  cache.add_observer(1, runtime::kAllMemoryEvents, note(all));
  cache.add_observer(2, runtime::memory_event_bit(Kind::kOutOfMemory), note(some));
  cache.add_observer(3, runtime::kAllMemoryEvents, [](const runtime::MemoryEvent&) { throw std::runtime_error("no"); });
  CHECK(runtime::MemoryObserverList::exist());
  char* a = allocate(cache, 1000, 6);
  cache.record_stream(a, {1, 0});
  CHECK(cache.release(a) && allocate(cache, 5 * kMiB) == nullptr);
  CHECK((all == std::vector{Kind::kSegmentAllocated, Kind::kAllocated, Kind::kStreamRecorded, Kind::kFreeRequested,
                            Kind::kFreeCompleted, Kind::kSegmentReleased, Kind::kOutOfMemory}));
  CHECK(some == std::vector{Kind::kOutOfMemory});
  CHECK(cache.remove_observer(1) == "" && cache.remove_observer(3) == "no" && !cache.remove_observer(1));
  CHECK(cache.remove_observer(2) == "" && !runtime::MemoryObserverList::exist());
  CHECK(cache.release(allocate(cache, 1000)) && all.size() == 7 && cache.empty());
}

inline void a_segment_is_mapped_once_while_it_is_in_use() {
  int opened = 0;
  int closed = 0;
  char memory[2] = {};
  runtime::ImportCache imports(
      [&](int device, const orIpcMemHandle_t&) {
        if (device > 1) {
          throw std::runtime_error("no such device");
        }
        ++opened;
        return memory + device;
      },
      [&](char*) { ++closed; });
  orIpcMemHandle_t handle{};
  handle.reserved[0] = 'a';
  auto first = imports.open(0, handle);
  auto second = imports.open(0, handle);
  CHECK(first == second && opened == 1 && imports.open(1, handle)->address() == memory + 1 && opened == 2);
  first.reset();
  CHECK(closed == 1);
  second.reset();
  CHECK(closed == 2 && imports.open(0, handle)->address() == memory && opened == 3);
  try {
    imports.open(2, handle);
    CHECK(!"an error is passed on");
  } catch (const std::runtime_error&) {
  }
  CHECK(imports.open(0, handle) != nullptr && opened == 4);
}

inline void launch_memory_is_used_again() {
  void* const first = runtime::allocate_launch_memory(200);
  runtime::release_launch_memory(first, 200);
  std::vector<void*> later;
  do {
    later.push_back(runtime::allocate_launch_memory(193));  // of the same class
  } while (later.back() != first && later.size() < 1000);
  CHECK(later.back() == first);
  for (void* memory : later) {
    runtime::release_launch_memory(memory, 193);
  }
}

inline void check_all() {
  best_fit_is_the_smallest_block_of_the_stream_at_the_lowest_address();
  allocated_blocks_are_found_by_address_however_many();
  blocks_are_cut_and_joined();
  a_block_waits_for_the_streams_that_use_it();
  everything_is_tried_before_memory_runs_out();
  the_limit_and_the_garbage_threshold_hold();
  oversize_blocks_serve_only_requests_like_themselves();
  private_pools_keep_their_memory();
  emptying_frees_what_a_capture_kept_back();
  observers_get_what_they_asked_for();
  a_segment_is_mapped_once_while_it_is_in_use();
  launch_memory_is_used_again();
}

}  // namespace memory_test
