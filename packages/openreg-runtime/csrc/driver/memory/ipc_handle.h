// SPDX-License-Identifier: BSD-3-Clause
// An IPC handle (orIpcMemHandle_t) is a string of bytes by which another process maps device memory of this one. This
// file defines its format, and checks handles that were received.
//
// Threat model. A handle arrives through pipes, queues and files that other programs may write to, so it is hostile
// input until it has been checked. Processes of one user trust each other; the system keeps other users out:
//
//   - A handle contains numbers and no path. The receiver derives the name of the object from the numbers of process
//     and object (platform::open_shared()). So a handle reaches only objects that a process of that number holds.
//   - The system restricts the processes that can open an object. On Linux these are processes of the exporting user,
//     or with CAP_SYS_PTRACE; on macOS, processes of that user. On Windows these are processes in the same session that
//     the security descriptor of the exporting user admits.
//   - The receiver opens only an object of its own user whose length is exactly that of the handle. Where the system
//     has seals (Linux), the object must be sealed, so that no process can shorten it under a mapping.
//   - The object must contain the token of the handle, 128 random bits that are new for each export. A process with
//     neither the handle nor access to the object cannot name it. Numbers of processes and objects may be reused; a
//     token never is.
//   - The checksum has no key. It detects damage in transit and proves nothing about the origin. A key would not help,
//     because every process that can open the object would have to read it. Such a process can read the token and write
//     into the memory anyway.
//   - A process that has opened an object may change its bytes at any time. So the receiver uses no content of an
//     object as an address, a length or a path.
#pragma once

#include <array>
#include <cstdint>

#include "openreg.h"

namespace openreg::driver {

// The bytes of a handle, in the processor's byte order, because a handle never leaves the machine. The rest of the
// handle is zero.
struct IpcHandleLayout {
  uint64_t magic;
  uint64_t checksum;  // of the members after it
  uint64_t process;   // number of the process that owns the allocation
  uint64_t object;    // number of the shared object in that process
  std::array<uint64_t, 2> token;
  uint64_t size;  // bytes of the allocation, whole pages
};
static_assert(sizeof(IpcHandleLayout) <= sizeof(orIpcMemHandle_t));

// Returns a random token that no process can guess.
std::array<uint64_t, 2> make_ipc_token();

// Returns `layout` as a handle, with the magic number and the checksum.
orIpcMemHandle_t encode_ipc_handle(IpcHandleLayout layout);

// Returns the content of a handle and opens nothing. Throws Error(orErrorInvalidValue) if the handle is damaged, its
// size is not that of an allocation, or it comes from this process.
IpcHandleLayout decode_ipc_handle(const orIpcMemHandle_t& handle);

}  // namespace openreg::driver
