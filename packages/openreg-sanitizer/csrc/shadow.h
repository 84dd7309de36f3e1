// SPDX-License-Identifier: BSD-3-Clause
// The shadow of memory: for each allocation the last accesses of tasks, the bytes that have been written, and what is
// left of the allocations that had the memory before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "layout.h"
#include "ordering.h"

namespace openreg::sanitizer {

// An access of a task to a range of memory.
struct Access {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t ticket = 0;
  uint32_t queue = 0;
  uint32_t layout = 0;  // in the LayoutTable
  uint32_t site = 0;    // in the SiteTable: task and stacks
  bool reads = false;
  bool writes = false;
};

// An allocation from its beginning to its release.
struct Life {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  int device = -1;  // -1: pinned memory of the host
  StreamName owner;
  uint32_t allocated = 0;  // stack
  uint32_t freed = 0;      // stack; 0 while it lives
};

enum class FindingKind : uint8_t {
  kRace,           // two accesses without an order
  kReuse,          // an access to memory whose earlier allocation another stream still uses
  kUseAfterFree,   // an access to memory that has been freed
  kUninitialized,  // a read of bytes that nothing has written
  kHostRead,       // the host reads pinned memory before the copy into it is done
  kHostWrite,      // the host changes pinned memory before the copy from it is done
  kGraphInput,     // a graph is replayed after memory that it uses was freed
  kOutOfBounds,    // a kernel has changed bytes after its operand's allocation
  kPoison,         // the host reads a value that was computed from poisoned memory
  kFreedInUse,     // memory is freed while a stream that was not recorded uses it; only a warning
};

// What is wrong between two accesses. kUninitialized, kUseAfterFree, kGraphInput, kOutOfBounds and kPoison have no
// first access: its site is 0.
struct Conflict {
  FindingKind kind;
  Access first;
  Life first_life;
  Access second;
  Life second_life;
};

// The bytes after an allocation, which a task has filled with runtime::kRedZoneByte.
struct RedZone {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint32_t queue = 0;   // of the fill
  uint64_t ticket = 0;  // of the fill
};

// The shadow memory. The caller holds the sanitizer's mutex.
class Shadow {
 public:
  Shadow(LayoutTable& layouts, Ordering& ordering) : layouts_(layouts), ordering_(ordering) {}

  // Forgets everything.
  void clear() {
    blocks_.clear();
    regions_.clear();
  }

  // Memory of the driver: a segment, an import or pinned memory.
  void add_region(uintptr_t begin, size_t size, int device);
  void remove_region(uintptr_t begin);

  // An allocation in a region. `is_private`: of a pool of a graph, whose replays use memory that was freed.
  // `was_written`: its content is known to be defined.
  void allocate(const Life& life, bool is_private, bool was_written);
  // Another stream uses the allocation that contains the address.
  void record_stream(uintptr_t address, const StreamName& stream);
  // The allocation ends. Appends kFreedInUse for each stream that uses it and was not recorded.
  void free(uintptr_t address, uint32_t stack, std::vector<Conflict>& conflicts);

  // Compares an access of a task with all earlier ones, appends what is wrong, and adds the access. `clock`: what
  // happens before the task. `checks_content`: the task uses what it reads, so it must have been written.
  void access(const Access& access, const VectorClock& clock, bool checks_content, bool is_replay,
              std::vector<Conflict>& conflicts);
  // Compares an access of the host to pinned memory with those of tasks.
  void host_access(const Access& access, std::vector<Conflict>& conflicts);

  // Sets the red zone of the allocation that contains it.
  void set_red_zone(const RedZone& zone);
  // Returns the red zone of the allocation that contains the address, or one without bytes if there is none.
  RedZone red_zone(uintptr_t address) const;
  // Returns the red zone that a task outside of a graph must not change: none in a private pool, where only a replay
  // fills it, and none if nothing orders its fill before the task. `clock`: what happens before the task.
  RedZone red_zone(const Access& access, const VectorClock& clock) const;

  // Returns true if every earlier use of the allocation's memory precedes the next task of its stream.
  bool is_unused(uintptr_t address) const;

  // Returns a number that is unique to the allocation that contains the address, or 0 if there is none or it is of a
  // private pool.
  uint64_t generation(uintptr_t address) const;
  // Returns the allocation that contains the address, or a life without an end if there is none.
  Life life(uintptr_t address) const;
  // Marks all memory of a device as written, because a task wrote there whose operands are unknown.
  void written_by_unknown(int device);
  // Returns the number of accesses in the shadow.
  size_t size() const;

 private:
  enum class State : uint8_t { kLive, kFreed, kRaw };
  struct Remnant {  // an access to an allocation that had the memory before
    Access access;
    std::shared_ptr<const Life> life;
  };
  struct Block {
    Life life;
    State state = State::kRaw;
    bool is_private = false;
    bool is_written = true;  // all bytes are
    uint64_t generation = 0;
    std::vector<Access> accesses;
    std::vector<Remnant> remnants;
    std::vector<std::pair<uintptr_t, uintptr_t>> written;  // disjoint and sorted
    std::vector<StreamName> recorded;
    RedZone red_zone;
  };
  using Blocks = std::map<uintptr_t, Block>;

  Block* find(uintptr_t address);
  const Block* find(uintptr_t address) const { return const_cast<Shadow*>(this)->find(address); }
  bool overlap(const Access& one, const Access& other) const;
  void compare(Block& block, const Access& access, const VectorClock& clock, std::vector<Conflict>& conflicts);
  void limit(Block& block);
  void limit_remnants(std::vector<Remnant>& remnants) const;
  void mark_written(Block& block, const Access& access);
  bool is_written(const Block& block, const Access& access) const;

  LayoutTable& layouts_;
  Ordering& ordering_;
  Blocks blocks_;   // allocations, and freed memory that has accesses
  Blocks regions_;  // memory of the driver, for what is in no allocation
  uint64_t generation_ = 0;
};

}  // namespace openreg::sanitizer
