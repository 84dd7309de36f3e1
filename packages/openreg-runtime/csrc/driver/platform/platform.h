// SPDX-License-Identifier: BSD-3-Clause
// The operating system services that the driver uses. The source files of this folder implement them for each system;
// no other file of the driver may contain a platform call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::driver::platform {

// Returns the page size in bytes. Every size and address below is a multiple of it.
size_t page_size();

// Returns the memory that this process may use, in bytes: the limit of its container if there is one, else the
// machine's memory.
size_t usable_memory();

// Reserves addresses that fault on every access and take no memory. Returns null if the system refuses.
void* reserve_inaccessible(size_t size);

// Reserves readable and writable addresses, aligned to 2 MiB, that take memory only when touched or committed.
// Returns null if the system refuses.
void* reserve_accessible(size_t size);

// Makes a part of an accessible reservation usable (a system may do that on first touch instead). Returns false if the
// system refuses.
bool commit(void* address, size_t size) noexcept;

// Returns the memory behind a part of an accessible reservation to the system; its content is lost.
void decommit(void* address, size_t size) noexcept;

// Makes a part of an accessible reservation, in which no memory is in use, fault on every access.
void make_inaccessible(void* address, size_t size) noexcept;

// Releases a whole reservation.
void unreserve(void* address, size_t size) noexcept;

// Allocates page-aligned host memory; returns null if the system refuses.
void* allocate_pages(size_t size);
// Frees memory from allocate_pages().
void free_pages(void* address, size_t size) noexcept;

// A shared memory object that several processes map. The owner of this value calls close_shared() once; mappings stay
// valid afterwards.
struct SharedMemory {
  intptr_t object = -1;     // a descriptor or handle of this process
  size_t size = 0;          // bytes
  uint64_t number = 0;      // identifies it, with the creator's process number, until the creator closes it or ends
  bool is_creator = false;  // true in the creator, the process that called create_shared()
};

// Creates a zero-filled object of `size` bytes, which only processes of the same user can open. Returns false if the
// system refuses.
bool create_shared(size_t size, SharedMemory& memory);
// Opens an object of another process by that process's number and the object's number there. Both numbers are hostile
// input: unless they identify a shared object of this user, only kind and owner of what they identify are read.
// Returns false if it is not an object of create_shared() for this user with a fixed length, or if the system refuses.
bool open_shared(uint64_t process, uint64_t number, SharedMemory& memory);
// Closes an object from open_shared() or create_shared(). No process can open an object after its creator closed it.
void close_shared(SharedMemory& memory) noexcept;

// Offsets into shared memory are multiples of this.
constexpr size_t kSharedGranule = size_t{64} << 10;

// Maps a part of `memory`, readable and writable, at an address that the system selects. Returns null if the system
// refuses.
void* map_shared(const SharedMemory& memory, size_t offset, size_t size);
// Unmaps a range from map_shared().
void unmap_shared(void* address, size_t size) noexcept;

// Same as `map_shared()`, except that `address` lies in an accessible reservation. Replaces what the range contains,
// which is lost. Returns false if the system refuses; the range is then as after decommit().
bool map_shared_at(const SharedMemory& memory, size_t offset, void* address, size_t size) noexcept;
// Unmaps a range from map_shared_at() and leaves it as decommit() does.
void unmap_shared_at(void* address, size_t size) noexcept;

// Returns the number by which other processes identify this process.
uint64_t process_id();

// Registers three functions for every later fork(): `before` runs before it, `in_parent` and `in_child` after it in
// their process. All run on the thread that forks. Does nothing on systems without fork().
void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// Returns true if other threads still run during exit handlers, so that an exit handler can wait for them.
bool threads_run_during_exit();

// Names the calling thread (at most 15 characters) for debuggers.
void name_thread(const char* name);

// Hints to the processor that the calling thread polls memory, so that the other hardware thread of the core can use
// its units. Takes about 20 to 100 ns.
void relax();

}  // namespace openreg::driver::platform
