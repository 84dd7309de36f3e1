// SPDX-License-Identifier: BSD-3-Clause
// What the device needs from the operating system. One source file per system implements it; no other file of the
// driver may contain a platform call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::driver::platform {

// Bytes; every size and address below is a multiple of it.
size_t page_size();

// Memory that this process may use: the limit of its container if there is one, else of the machine. Bytes.
size_t usable_memory();

// Reserves addresses that fault on every access and take no memory. Null when the system refuses.
void* reserve_inaccessible(size_t size);

// Reserves readable and writable addresses, aligned to 2 MiB, that take memory only when touched or committed.
// Null when the system refuses.
void* reserve_accessible(size_t size);

// Makes a part of an accessible reservation usable (a system may do that on first touch instead). False on failure.
bool commit(void* address, size_t size) noexcept;

// Gives the memory behind a part of an accessible reservation back to the system; its content is lost.
void decommit(void* address, size_t size) noexcept;

// Makes a part of an accessible reservation that holds nothing fault on every access.
void make_inaccessible(void* address, size_t size) noexcept;

// Undoes a reservation.
void unreserve(void* address, size_t size) noexcept;

// Page-aligned host memory, null when the system refuses; and its release.
void* allocate_pages(size_t size);
void free_pages(void* address, size_t size) noexcept;

// Memory that several processes map. Whoever holds a copy of it calls close_shared() once; mappings stay.
struct SharedMemory {
  intptr_t object = -1;  // a descriptor or handle of this process
  size_t size = 0;       // bytes
  uint64_t number = 0;   // other processes find it by this and the maker's number, until the maker closes it or ends
  bool is_maker = false;
};

// Zero-filled, of `size` bytes, and for processes of the same user. False when the system refuses.
bool create_shared(size_t size, SharedMemory& memory);
// What another process made, by the number of that process and of the object there. Both are hostile input: whatever
// they name, nothing happens to it but that its kind and its owner are looked at, unless it is an object which
// create_shared() can have made for this user, of a length that stays. False when it is none, or the system refuses.
bool open_shared(uint64_t process, uint64_t number, SharedMemory& memory);
// Closes what open_shared() opened, or what create_shared() made: then nobody finds it any more.
void close_shared(SharedMemory& memory) noexcept;

// Offsets into shared memory are multiples of this.
constexpr size_t kSharedGranule = size_t{64} << 10;

// Maps a part of it, readable and writable, wherever there is room; null when the system refuses. And its undoing.
void* map_shared(const SharedMemory& memory, size_t offset, size_t size);
void unmap_shared(void* address, size_t size) noexcept;

// The same at an address inside an accessible reservation, in place of what is there, and lost. Unmapping leaves the
// range as decommit() does. False when the system refuses; then the range is as decommitted.
bool map_shared_at(const SharedMemory& memory, size_t offset, void* address, size_t size) noexcept;
void unmap_shared_at(void* address, size_t size) noexcept;

// Number of this process, as other processes know it.
uint64_t process_id();

// Calls the first function before every later fork(), then one of the others in each process, all on the thread that
// forks. Does nothing where there is no fork().
void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// Whether other threads still run when exit handlers do, so that waiting for them makes sense.
bool threads_run_during_exit();

// Names the calling thread (at most 15 characters) for debuggers.
void name_thread(const char* name);

// Tells the processor that the calling thread looks again and again for what another one writes, so that it leaves the
// core's units to its sibling. About 20 to 100 ns.
void relax();

}  // namespace openreg::driver::platform
