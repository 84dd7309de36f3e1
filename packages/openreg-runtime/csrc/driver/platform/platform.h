// SPDX-License-Identifier: BSD-3-Clause
// This file declares the operating system services that the driver uses. The source files of this folder implement them
// for each system. No other file of the driver calls the system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::driver::platform {

// Returns the page size in bytes. Sizes and addresses that are passed to the functions below must be multiples of it.
size_t page_size();

// Returns the memory that this process may use, in bytes: the machine's memory, or the limit of the process's container
// (Linux control group) if that is lower.
size_t usable_memory();

// Reserves addresses that fault on every access and use no memory. Returns null if the system refuses.
void* reserve_inaccessible(size_t size);

// Reserves addresses that are readable and writable after commit(), and use no memory before. Linux and macOS align
// them to 2 MiB, the size of a huge page. Returns null if the system refuses.
void* reserve_accessible(size_t size);

// Makes a part of an accessible reservation usable. Returns false if the system refuses. Linux and macOS do nothing
// here, and add memory when a page is first touched.
bool commit(void* address, size_t size) noexcept;

// Returns the memory of a part of an accessible reservation to the system. Its content is lost.
void decommit(void* address, size_t size) noexcept;

// Makes a part of an accessible reservation fault on every access. The part must have no committed memory.
void make_inaccessible(void* address, size_t size) noexcept;

// Releases a reservation, which must be passed as a whole.
void unreserve(void* address, size_t size) noexcept;

// Allocates page-aligned host memory. Returns null if the system refuses.
void* allocate_pages(size_t size);
// Frees memory from allocate_pages().
void free_pages(void* address, size_t size) noexcept;

// A shared memory object, which several processes can map. The owner of this value calls close_shared() once. Mappings
// stay valid afterwards.
struct SharedMemory {
  intptr_t object = -1;     // a descriptor or handle of this process
  size_t size = 0;          // in bytes
  uint64_t number = 0;      // with the creator's process number, identifies the object until the creator closes it
  bool is_creator = false;  // true in the process that called create_shared()
};

// Creates a zero-filled object of `size` bytes, which only processes of the same user can open. Returns false if the
// system refuses.
bool create_shared(size_t size, SharedMemory& memory);
// Opens an object that another process created, by the number of that process and the `number` of the object there.
// Both numbers are hostile input, so the content of an object that create_shared() did not make is neither read nor
// changed. Returns true only if they identify an object from create_shared() of the same user and the system permits
// it.
bool open_shared(uint64_t process, uint64_t number, SharedMemory& memory);
// Closes an object from open_shared() or create_shared(). No process can open the object by the creator's numbers after
// the creator has closed it; on Windows, only after every process that opened it has closed it, too.
void close_shared(SharedMemory& memory) noexcept;

// Offsets into shared memory are multiples of this, in bytes.
constexpr size_t kSharedGranule = size_t{64} << 10;

// Maps a part of `memory`, readable and writable, at an address that the system selects. Returns null if the system
// refuses.
void* map_shared(const SharedMemory& memory, size_t offset, size_t size);
// Unmaps a range from map_shared().
void unmap_shared(void* address, size_t size) noexcept;

// Maps a part of `memory` at `address`, which lies in an accessible reservation. The previous content of the range is
// lost. Returns false if the system refuses; the range is then as after decommit().
bool map_shared_at(const SharedMemory& memory, size_t offset, void* address, size_t size) noexcept;
// Unmaps a range from map_shared_at(), which is then as after decommit().
void unmap_shared_at(void* address, size_t size) noexcept;

// Returns the number by which other processes identify this process.
uint64_t process_id();

// Registers three functions for every later fork(), as pthread_atfork() does: `before` runs before it, `in_parent` and
// `in_child` run after it in the respective process. All run on the thread that forks. Does nothing on systems without
// fork().
void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// Returns true if other threads still run while exit handlers run, so that an exit handler can wait for them.
bool threads_run_during_exit();

// Names the calling thread (at most 15 characters) for debuggers. Does nothing on Windows.
void name_thread(const char* name);

// Hints to the processor that the calling thread polls memory, so that the other hardware thread of the core can use
// the core's execution units. Takes about 20 to 100 ns.
void relax();

}  // namespace openreg::driver::platform
