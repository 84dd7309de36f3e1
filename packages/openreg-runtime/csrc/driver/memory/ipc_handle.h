// SPDX-License-Identifier: BSD-3-Clause
// What a handle of memory says to another process, and which handles are believed.
//
// Threat model. A handle arrives through pipes, queues and files that others may write to, so it is hostile input until
// it has been looked at. Processes of one user trust each other; the system keeps other users out:
//
//   - A handle holds numbers and no path. The receiver makes the name of the object from the number of the process and
//     the number of the object (platform::open_shared()), so a handle reaches nothing but what a process of that number
//     holds.
//   - Who may open an object: a process that the system lets look into its maker. On Linux that is one of the same user
//     (or with CAP_SYS_PTRACE), on macOS one of the same user, on Windows one that the security descriptor of the
//     maker's user admits, in the same session.
//   - What is opened: an object that belongs to the receiver's own user, whose length is exactly what the handle says
//     and, where the system has seals (Linux), sealed, so that nobody can shorten it under a mapping.
//   - The object has to hold the token of the handle: 128 random bits, made anew for each export. Who has neither the
//     handle nor access to the object cannot name it. The number of a process or an object may mean another one by now;
//     the token never does.
//   - The checksum has no key. It finds damage on the way, and proves nothing about the origin. A key could not do
//     more: it would have to be readable by every process that may open the object, and such a process can read the
//     token and write into the memory anyway.
//   - Who has opened an object may change its bytes at any time. So nothing that lies in an object is used as an
//     address, a length or a path.
#pragma once

#include <array>
#include <cstdint>

#include "openreg.h"

namespace openreg::driver {

// The bytes of a handle, in the order of the processor: it never leaves the machine. The rest of the handle is zero.
struct IpcHandleLayout {
  uint64_t magic;
  uint64_t checksum;  // of what follows
  uint64_t process;   // number of the process that has the allocation
  uint64_t object;    // number of the shared object in that process
  std::array<uint64_t, 2> token;
  uint64_t size;  // bytes of the allocation, whole pages
};
static_assert(sizeof(IpcHandleLayout) <= sizeof(orIpcMemHandle_t));

// A token that nobody can guess.
std::array<uint64_t, 2> make_ipc_token();

// Fills in the magic number and the checksum.
orIpcMemHandle_t encode_ipc_handle(IpcHandleLayout layout);

// Throws Error(orErrorInvalidValue) unless the bytes can come from encode_ipc_handle() in another process: unless they
// are whole, and describe a size that an allocation can have. Opens nothing.
IpcHandleLayout decode_ipc_handle(const orIpcMemHandle_t& handle);

}  // namespace openreg::driver
