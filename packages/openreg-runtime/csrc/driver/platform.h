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

// Undoes a reservation.
void unreserve(void* address, size_t size) noexcept;

// Page-aligned host memory, null when the system refuses; and its release.
void* allocate_pages(size_t size);
void free_pages(void* address, size_t size) noexcept;

// Calls the first function before every later fork(), then one of the others in each process, all on the thread that
// forks. Does nothing where there is no fork().
void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// Whether other threads still run when exit handlers do, so that waiting for them makes sense.
bool threads_run_during_exit();

// Names the calling thread (at most 15 characters) for debuggers.
void name_thread(const char* name);

}  // namespace openreg::driver::platform
