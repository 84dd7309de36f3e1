// SPDX-License-Identifier: BSD-3-Clause
// Shadow memory, as in other sanitizers: a record of each allocation, beside the memory itself. The record has the last
// accesses of tasks, the bytes that were written, and accesses to former allocations of the same memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "access.h"
#include "byte_ranges.h"
#include "finding.h"
#include "layout.h"
#include "ordering.h"

namespace openreg::sanitizer {

// The shadow memory of the process. A region is memory of the driver: a segment of the caching allocator, an import
// from another process, or pinned memory. Allocations lie in regions. The caller holds the sanitizer's mutex.
class Shadow {
 public:
  Shadow(const LayoutTable& layouts, const Ordering& ordering) : layouts_(layouts), ordering_(ordering) {}

  // Forgets everything.
  void clear();

  void add_region(uintptr_t begin, size_t size, int device);
  // Removes a region with its allocations.
  void remove_region(uintptr_t begin);

  // Adds an allocation. `is_private`: the memory may be used after it was freed, as that of a private pool, which
  // replays of graphs use. `was_written`: the content is defined, or may be.
  void allocate(const Life& life, bool is_private, bool was_written);
  // Notes that another stream uses the allocation that contains the address, as Tensor.record_stream() does.
  void record_stream(uintptr_t address, const StreamName& stream);
  // Ends the allocation that contains the address. Returns the accesses of tasks that may still run when the allocator
  // reuses the memory, because nothing orders these tasks before the owning stream's next one, and record_stream() was
  // not called for their stream.
  std::vector<Access> free(uintptr_t address, uint32_t stack);

  // Adds an access of a task. Returns the ways in which it is wrong, by itself or together with earlier accesses.
  // `clock` is that of the task, the set of tasks that happen before it.
  std::vector<Violation> access(const Access& access, const VectorClock& clock);
  // Returns the conflicts of an access of the host to pinned memory with tasks for which the host has not waited.
  std::vector<Violation> host_access(const Access& access) const;
  // Marks all memory of a device as written, because a task wrote there whose operands are unknown.
  void written_by_unknown(int device);

  // Sets the red zone (bytes that a task has filled after the program's part of an allocation) of the allocation that
  // contains it.
  void set_red_zone(const RedZone& zone);
  // Returns the red zone of the allocation that contains the address, or one without bytes if there is none.
  RedZone red_zone(uintptr_t address) const;
  // Returns the red zone of the accessed allocation if it is certainly filled when a task outside of a graph makes this
  // access, so that the task must not change it. Returns one without bytes if nothing orders the fill before the task,
  // or if the allocation is in a private pool, whose red zones only replays fill. `clock` is that of the task.
  RedZone filled_red_zone(const Access& access, const VectorClock& clock) const;

  // Returns true if the next task of the owning stream may write to the allocation at the address, because no task may
  // then still access its memory through a former allocation.
  bool is_unused(uintptr_t address) const;
  // Returns a number that is unique to the allocation at the address. 0: there is none, or it is private.
  uint64_t generation(uintptr_t address) const;
  // Returns the allocation or region that contains the address, or a Life whose end is 0 if there is none.
  Life life(uintptr_t address) const;
  // Returns the number of accesses in the shadow.
  size_t size() const;

 private:
  enum class BlockState : uint8_t {
    kLive,    // an allocation
    kFreed,   // memory of a freed allocation, which tasks may still access
    kRegion,  // a region, for accesses outside of allocations
  };
  // An access to a former allocation of the same memory, by a task that may still run.
  struct FormerAccess {
    Access access;
    std::shared_ptr<const Life> life;
  };
  struct ShadowBlock {
    Life life;
    BlockState state = BlockState::kRegion;
    bool is_private = false;
    bool is_written = true;  // all bytes are; `written` is unused then
    uint64_t generation = 0;
    std::vector<Access> accesses;
    std::vector<FormerAccess> former_accesses;
    ByteRanges written;
    std::vector<StreamName> recorded;
    RedZone red_zone;
  };
  using ShadowBlocks = std::map<uintptr_t, ShadowBlock>;  // by first address

  ShadowBlock* find(uintptr_t address);
  const ShadowBlock* find(uintptr_t address) const { return const_cast<Shadow*>(this)->find(address); }
  static void append_former_accesses(const ShadowBlock& block, uintptr_t begin, uintptr_t end,
                                     std::vector<FormerAccess>& former_accesses);
  std::vector<FormerAccess> take_range(uintptr_t begin, uintptr_t end);
  VectorClock clock_at_reuse(const ShadowBlock& block) const;
  bool precedes_owner(const Access& access, std::optional<uint32_t> owner) const;
  bool conflict(const Access& one, const Access& other) const;
  bool supersedes(const Access& access, const Access& earlier) const;
  void compare_with_former_accesses(ShadowBlock& block, const Access& access, const VectorClock& clock,
                                    std::vector<Violation>& violations) const;
  void compare_with_accesses(ShadowBlock& block, const Access& access, const VectorClock& clock,
                             std::vector<Violation>& violations) const;
  void limit_accesses(ShadowBlock& block) const;
  void limit_former_accesses(std::vector<FormerAccess>& former_accesses) const;
  void mark_written(ShadowBlock& block, const Access& access) const;
  bool is_written(const ShadowBlock& block, const Access& access) const;

  const LayoutTable& layouts_;
  const Ordering& ordering_;
  ShadowBlocks blocks_;  // live and freed allocations
  ShadowBlocks regions_;
  uint64_t generation_ = 0;
};

}  // namespace openreg::sanitizer
