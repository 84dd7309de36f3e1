// SPDX-License-Identifier: BSD-3-Clause
// This file contains the process whose IPC handles platform_ipc_fuzz.cpp changes. It exports memory, frees some of it,
// and keeps files open that resemble exports (decoys). It needs POSIX; the decoys exist only on Linux.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "memory/ipc_handle.h"
#include "openreg.h"
#include "platform/platform.h"
#include "stress_common.h"

#if defined(__linux__)
#include <sys/inotify.h>
#include <sys/prctl.h>
#endif

namespace fuzz {

using openreg::driver::encode_ipc_handle;
using openreg::driver::IpcHandleLayout;

constexpr size_t kHeaderRoom = openreg::driver::platform::kSharedGranule;  // before the bytes of an allocation

// The kind of object behind a handle, which determines the result of opening it.
enum class Kind : uint8_t {
  kLive,      // exported memory: the handle can be opened
  kGone,      // exported memory that was freed: the handle is rejected
  kDecoy,     // any other file that the process keeps open: the handle is rejected
  kTooLarge,  // a valid object, as another program could create it, that is too large for the addresses of a device
};

// A handle of the exporting process.
struct Entry {
  orIpcMemHandle_t handle;
  Kind kind;
  unsigned char fill;  // the value of all bytes of live memory
  char name[46];
};

inline Entry entry_of(const orIpcMemHandle_t& handle, Kind kind, const char* name, unsigned char fill = 0) {
  Entry entry{handle, kind, fill, {}};
  std::snprintf(entry.name, sizeof(entry.name), "%s", name);
  return entry;
}

constexpr std::array<uint64_t, 2> kToken{0x1234567890abcdef, 0xfedcba0987654321};

// The first bytes of a shared object. Same layout as SharedHeader in ipc_memory.cpp.
struct Header {
  std::array<uint64_t, 2> token = kToken;
  uint64_t process = static_cast<uint64_t>(getpid());
  uint32_t alive = 1;
};

// The exports and decoys of the process. Their descriptors stay open until the process ends.
class Exports {
 public:
  Exports() {
    const size_t page = openreg::driver::platform::page_size();
    for (const size_t pages : {1, 2, 16, 64, 256}) {
      add_live(pages * page);
    }
    std::vector<void*> freed;
    for (const size_t pages : {1, 2, 3}) {
      freed.push_back(add_memory(pages * page, Kind::kGone));
    }
    for (void* address : freed) {
      CHECK(orFree(address) == orSuccess);
    }
    add_live(page);  // its descriptor has the number of a freed one
#if defined(__linux__)
    add_decoys(page);
#endif
  }

  const std::vector<Entry>& entries() const { return entries_; }

  // Returns how often any process has opened one of the decoys of add_named_decoys().
  uint64_t opened_decoys() const {
    uint64_t count = 0;
#if defined(__linux__)
    alignas(inotify_event) std::array<char, 4096> bytes;
    for (ssize_t size = 0; (size = read(watch_, bytes.data(), bytes.size())) > 0;) {
      for (ssize_t at = 0; at < size; ++count) {
        inotify_event event{};
        std::memcpy(&event, bytes.data() + at, sizeof(event));
        at += static_cast<ssize_t>(sizeof(event) + event.len);
      }
    }
#endif
    return count;
  }

 private:
  void* add_memory(size_t size, Kind kind) {
    void* address = nullptr;
    orIpcMemHandle_t handle{};
    const auto fill = static_cast<unsigned char>(entries_.size() + 1);
    CHECK(orMalloc(&address, size) == orSuccess);
    CHECK(orMemset(address, fill, size) == orSuccess);
    CHECK(orIpcGetMemHandle(&handle, address) == orSuccess);
    entries_.push_back(entry_of(handle, kind, kind == Kind::kLive ? "live" : "gone", fill));
    return address;
  }

  void add_live(size_t size) { add_memory(size, Kind::kLive); }

#if defined(__linux__)
  static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // Adds a handle to an open file, with the process, descriptor and size that the file has.
  void add_decoy(const char* name, int descriptor, size_t size, Kind kind = Kind::kDecoy) {
    CHECK(descriptor >= 0);
    IpcHandleLayout layout{};
    layout.process = static_cast<uint64_t>(getpid());
    layout.object = static_cast<uint64_t>(descriptor);
    layout.token = kToken;
    layout.size = size;
    entries_.push_back(entry_of(encode_ipc_handle(layout), kind, name));
  }

  static int filled(int descriptor, size_t length, const Header& header = {}) {
    CHECK(descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(length)) == 0);
    CHECK(pwrite(descriptor, &header, std::min(sizeof(header), length), 0) >= 0);
    return descriptor;
  }

  static int sealed(size_t length, int seals, const Header& header = {}) {
    const int descriptor = filled(memfd_create("openreg", MFD_CLOEXEC | MFD_ALLOW_SEALING), length, header);
    CHECK(seals == 0 || fcntl(descriptor, F_ADD_SEALS, seals) == 0);
    return descriptor;
  }

  void add_decoys(size_t page) {
    const size_t whole = kHeaderRoom + page;
    add_decoy("memory without seals", sealed(whole, 0), page);
    add_decoy("memory that may grow", sealed(whole, F_SEAL_SHRINK | F_SEAL_SEAL), page);
    add_decoy("memory that may shrink", sealed(whole, F_SEAL_GROW | F_SEAL_SEAL), page);
    add_decoy("memory whose seals may change", sealed(whole, F_SEAL_GROW | F_SEAL_SHRINK), page);
    add_decoy("memory sealed against writing", sealed(whole, kSeals | F_SEAL_WRITE), page);
    add_decoy("memory that cannot be sealed", filled(memfd_create("openreg", MFD_CLOEXEC), whole), page);
    const int longer = sealed(whole + page, kSeals);
    add_decoy("memory of a page more", longer, page);
    // An object that another program of this user has created like an export is accepted.
    add_decoy("the same, with the true size", longer, 2 * page, Kind::kLive);
    add_decoy("memory of a byte more", sealed(whole + 1, kSeals), page);
    add_decoy("memory of a page less", sealed(whole - page, kSeals), page);
    add_decoy("memory of a byte less", sealed(whole - 1, kSeals), page);
    add_decoy("memory of no length", sealed(0, kSeals), page);
    add_decoy("memory with another token", sealed(whole, kSeals, {.token = {kToken[0], kToken[1] + 1}}), page);
    add_decoy("memory that was freed", sealed(whole, kSeals, {.alive = 0}), page);
    add_decoy("memory with another mark", sealed(whole, kSeals, {.alive = 2}), page);
    add_decoy("memory with another maker", sealed(whole, kSeals, {.process = 1}), page);
    constexpr size_t kTerabyte = size_t{1} << 40;
    add_decoy("memory of a terabyte", sealed(kHeaderRoom + kTerabyte, kSeals), kTerabyte, Kind::kTooLarge);
    if (geteuid() == 0) {  // only root can create files of two users
      CHECK(seteuid(65534) == 0);
      const int foreign = sealed(whole, kSeals);
      CHECK(seteuid(0) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
      add_decoy("memory of another user", foreign, page);
    }
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    add_decoy("the read end of a pipe", ends[0], page);
    add_decoy("the write end of a pipe", ends[1], page);
    add_decoy("a socket", socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), page);
    add_decoy("a device", open("/dev/zero", O_RDWR | O_CLOEXEC), page);
    add_named_decoys(page);
  }

  // Adds decoys that opened_decoys() watches.
  void add_named_decoys(size_t page) {
    char folder[] = "/tmp/ipc_fuzz.XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    const std::string file = std::string(folder) + "/file";
    const std::string fifo = std::string(folder) + "/fifo";
    CHECK(mkfifo(fifo.c_str(), 0600) == 0);
    add_decoy("a file", filled(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), kHeaderRoom + page), page);
    add_decoy("a named pipe", open(fifo.c_str(), O_RDWR | O_CLOEXEC), page);
    add_decoy("a folder", open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), page);
    watch_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch_ >= 0);
    for (const std::string& path : {file, fifo}) {
      CHECK(inotify_add_watch(watch_, path.c_str(), IN_OPEN) >= 0);
      CHECK(unlink(path.c_str()) == 0);  // from now on only reachable through the descriptor, as an export is
    }
    CHECK(rmdir(folder) == 0);
  }

  int watch_ = -1;
#endif

  std::vector<Entry> entries_;
};

inline void write_all(int descriptor, const void* bytes, size_t size) {
  CHECK(write(descriptor, bytes, size) == static_cast<ssize_t>(size));
}

inline void read_all(int descriptor, void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = read(descriptor, static_cast<char*>(bytes) + done, size - done);
    CHECK(count > 0);
    done += static_cast<size_t>(count);
  }
}

// Writes the handles to `answers`. When `questions` was closed, writes the result of opened_decoys() and exits.
[[noreturn]] inline void serve(int answers, int questions) {
  const Exports exports;
  const size_t count = exports.entries().size();
  write_all(answers, &count, sizeof(count));
  write_all(answers, exports.entries().data(), count * sizeof(Entry));
  char byte = 0;
  CHECK(read(questions, &byte, 1) == 0);
  const uint64_t opened = exports.opened_decoys();
  write_all(answers, &opened, sizeof(opened));
  std::_Exit(0);
}

}  // namespace fuzz
