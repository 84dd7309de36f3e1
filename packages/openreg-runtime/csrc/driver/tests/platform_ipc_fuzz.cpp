// SPDX-License-Identifier: BSD-3-Clause
// This program changes the IPC handles of another process at random and opens them. It checks that only unchanged
// handles of live memory can be opened, and that no call crashes, blocks, or leaves a descriptor or mapping behind. It
// is meant to run under a sanitizer.
//
//   ipc_fuzz SECONDS [SEED]   opens 20 000 handles for each second, however long that takes; exit status 0 on success
//   ipc_fuzz plant FAULT      makes one mistake, which the program must report
//
// Half of the changed handles get a correct checksum, as a hostile sender would give them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "openreg.h"
#include "platform_ipc_exporter.h"
#include "stress_common.h"

namespace fuzz {
namespace {

using openreg::driver::join;
using stress::pick;
using stress::Random;

constexpr uint64_t kHandlesPerSecond = 20'000;

// The other process. It is forked before this process uses the device.
class Exporter {
 public:
  Exporter() {
    int answers[2];
    int questions[2];
    CHECK(pipe(answers) == 0 && pipe(questions) == 0);
    process_ = fork();
    CHECK(process_ >= 0);
    if (process_ == 0) {
      close(answers[0]);
      close(questions[1]);
      serve(answers[1], questions[0]);
    }
    close(answers[1]);
    close(questions[0]);
    answers_ = answers[0];
    questions_ = questions[1];
    size_t count = 0;
    read_all(answers_, &count, sizeof(count));
    entries.resize(count);
    read_all(answers_, entries.data(), count * sizeof(Entry));
  }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  pid_t process() const { return process_; }

  // Ends the process. Returns the number of times that a decoy was opened.
  uint64_t end() {
    uint64_t opened = 0;
    close(questions_);
    read_all(answers_, &opened, sizeof(opened));
    close(answers_);
    int status = 0;
    CHECK(waitpid(process_, &status, 0) == process_ && status == 0);
    return opened;
  }

  std::vector<Entry> entries;

 private:
  pid_t process_ = -1;
  int answers_ = -1;
  int questions_ = -1;
};

// Returns the content of a handle without any check.
IpcHandleLayout layout_of(const orIpcMemHandle_t& handle) {
  IpcHandleLayout layout{};
  std::memcpy(&layout, handle.reserved, sizeof(layout));
  return layout;
}

class Mutator {
 public:
  Mutator(const Exporter& exporter, uint64_t seed) : exporter_(exporter), random_(seed) {}

  orIpcMemHandle_t next() {
    const orIpcMemHandle_t original = any().handle;
    switch (pick(random_, 8)) {
      case 0:
        return pick(random_, 16) == 0 ? original : flipped(original, 1);
      case 1:
        return flipped(original, 1 + pick(random_, 8));
      case 2:
        return overwritten(original, pick(random_, sizeof(original.reserved)), pick(random_, 16) + 1);
      case 3:
        return overwritten(original, sizeof(IpcHandleLayout), sizeof(original.reserved));  // the bytes after the layout
      default:
        return encode_ipc_handle(changed(layout_of(original)));  // with a correct checksum
    }
  }

 private:
  const Entry& any() { return exporter_.entries[pick(random_, exporter_.entries.size())]; }

  orIpcMemHandle_t flipped(orIpcMemHandle_t handle, size_t bits) {
    for (size_t i = 0; i < bits; ++i) {
      handle.reserved[pick(random_, sizeof(handle.reserved))] ^= static_cast<char>(1U << pick(random_, 8));
    }
    return handle;
  }

  orIpcMemHandle_t overwritten(orIpcMemHandle_t handle, size_t begin, size_t count) {
    for (size_t i = begin; i < std::min(begin + count, sizeof(handle.reserved)); ++i) {
      handle.reserved[i] = static_cast<char>(random_());
    }
    return handle;
  }

  uint64_t any_number() {
    const std::array<uint64_t, 12> numbers{0,       1,        2,         uint64_t{1} << 31, (uint64_t{1} << 31) - 1,
                                           1 << 12, 1 << 16,  random_(), uint64_t{1} << 32, uint64_t{1} << 63,
                                           ~0ULL,   ~0ULL - 1};
    return numbers[pick(random_, numbers.size())];
  }

  uint64_t any_process() {
    const std::array<uint64_t, 4> processes{static_cast<uint64_t>(getpid()), static_cast<uint64_t>(getppid()),
                                            static_cast<uint64_t>(exporter_.process()), pick(random_, 4096)};
    return processes[pick(random_, processes.size())];
  }

  uint64_t near(uint64_t number) {
    const std::array<uint64_t, 6> numbers{number + 1,    number - 1, number + 4096,
                                          number - 4096, number * 2, number + (uint64_t{1} << 32)};
    return numbers[pick(random_, numbers.size())];
  }

  IpcHandleLayout changed(IpcHandleLayout layout) {
    for (size_t changes = 1 + pick(random_, 2); changes > 0; --changes) {
      const IpcHandleLayout other = layout_of(any().handle);
      switch (pick(random_, 10)) {
        case 0:
          layout.process = any_process();
          break;
        case 1:
          layout.process = pick(random_, 2) == 0 ? any_number() : near(layout.process);
          break;
        case 2:
          layout.object = pick(random_, 64);
          break;
        case 3:
          layout.object = pick(random_, 2) == 0 ? any_number() : near(layout.object);
          break;
        case 4:
          layout.object = other.object;
          break;
        case 5:
          layout.token = other.token;
          break;
        case 6:
          layout.token[pick(random_, 2)] ^= uint64_t{1} << pick(random_, 64);
          break;
        case 7:
          layout.size = any_number();
          break;
        case 8:
          layout.size = pick(random_, 2) == 0 ? other.size : near(layout.size);
          break;
        default:
          layout.size += openreg::driver::platform::page_size() * (pick(random_, 7) - 3);
          break;
      }
    }
    return layout;
  }

  const Exporter& exporter_;
  Random random_;
};

// Returns the entry whose handle has these bytes, or null if there is none.
const Entry* find(const std::vector<Entry>& entries, const orIpcMemHandle_t& handle) {
  for (const Entry& entry : entries) {
    if (std::memcmp(&entry.handle, &handle, sizeof(handle)) == 0) {
      return &entry;
    }
  }
  return nullptr;
}

void check_content(void* address, const Entry& entry) {
  void* base = nullptr;
  size_t size = 0;
  CHECK(orMemGetAddressRange(&base, &size, address) == orSuccess);
  CHECK(base == address && size == layout_of(entry.handle).size);
  unsigned char ends[2] = {};
  CHECK(orMemcpy(&ends[0], address, 1, orMemcpyDeviceToHost) == orSuccess);
  CHECK(orMemcpy(&ends[1], static_cast<char*>(address) + size - 1, 1, orMemcpyDeviceToHost) == orSuccess);
  CHECK(ends[0] == entry.fill && ends[1] == entry.fill);
}

// Opens a handle and closes the import. Checks that this succeeds only for live memory. Returns true if it does.
bool try_handle(const std::vector<Entry>& entries, const orIpcMemHandle_t& handle) {
  const Entry* const entry = find(entries, handle);
  const bool is_live = entry != nullptr && entry->kind == Kind::kLive;
  void* address = nullptr;
  const orError_t code = orIpcOpenMemHandle(&address, handle, 0);
  const bool is_opened = code == orSuccess;
  if (is_opened != is_live) {
    const IpcHandleLayout layout = layout_of(handle);
    std::fprintf(stderr, "%s (process %llu, object %llu, %llu bytes): code %d\n", entry == nullptr ? "?" : entry->name,
                 static_cast<unsigned long long>(layout.process), static_cast<unsigned long long>(layout.object),
                 static_cast<unsigned long long>(layout.size), static_cast<int>(code));
  }
  CHECK(is_opened == is_live);
  if (is_opened) {
    check_content(address, *entry);
    CHECK(orIpcCloseMemHandle(address) == orSuccess);
    return true;
  }
  const bool is_too_large = entry != nullptr && entry->kind == Kind::kTooLarge;
  CHECK(code == (is_too_large ? orErrorMemoryAllocation : orErrorInvalidValue));
  CHECK(is_too_large || std::strstr(orGetLastErrorMessage(), "`handle`") != nullptr);
  CHECK(address == nullptr);
  return false;
}

// Returns the numbers of open descriptors and of mappings of shared objects. Returns 0 on systems other than Linux.
std::pair<size_t, size_t> leftovers() {
  std::pair<size_t, size_t> count{0, 0};
#if defined(__linux__)
  const std::filesystem::directory_iterator files("/proc/self/fd");
  count.first = static_cast<size_t>(std::distance(begin(files), end(files)));
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    count.second += line.find("memfd:openreg") != std::string::npos ? 1 : 0;
  }
#endif
  return count;
}

void run(double seconds, uint64_t seed) {
  Exporter exporter;
  for (const Entry& entry : exporter.entries) {  // each handle once, unchanged; the first call starts the driver
    try_handle(exporter.entries, entry.handle);
  }
  const auto before = leftovers();
  const auto count = static_cast<uint64_t>(seconds * kHandlesPerSecond);
  Mutator mutator(exporter, seed);
  uint64_t opened = 0;
  for (uint64_t i = 0; i < count; ++i) {
    opened += try_handle(exporter.entries, mutator.next()) ? 1 : 0;
  }
  CHECK(opened > 0 || count < 1000);
  CHECK(leftovers() == before);
  CHECK(exporter.end() == 0);
  std::printf("%llu handles of %zu kinds, %llu opened live memory, none anything else, seed %llu\n",
              static_cast<unsigned long long>(count), exporter.entries.size(), static_cast<unsigned long long>(opened),
              static_cast<unsigned long long>(seed));
}

// Makes the mistake `fault`. Returns false if there is none with this name.
bool plant(const std::string& fault) {
  Exporter exporter;
  if (fault == "live_memory_taken_for_gone") {  // as if a handle could be opened that must be rejected
    exporter.entries.front().kind = Kind::kGone;
    try_handle(exporter.entries, exporter.entries.front().handle);
    return true;
  }
  if (fault == "decoy_that_is_opened") {
    const auto is_file = [](const Entry& entry) { return std::strcmp(entry.name, "a file") == 0; };
    const auto file = std::find_if(exporter.entries.begin(), exporter.entries.end(), is_file);
    CHECK(file != exporter.entries.end());
    const IpcHandleLayout layout = layout_of(file->handle);
    std::ifstream(join("/proc/", layout.process, "/fd/", layout.object)).get();
    CHECK(exporter.end() == 0);
    return true;
  }
  if (fault == "handle_that_is_too_short") {
    const auto bytes = std::make_unique<char[]>(sizeof(IpcHandleLayout));
    try_handle(exporter.entries, *reinterpret_cast<const orIpcMemHandle_t*>(bytes.get()));
    return true;
  }
  return false;
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "plant") == 0) {
    return fuzz::plant(argv[2]) ? 0 : 2;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  if (seconds <= 0) {
    std::fprintf(stderr, "usage: ipc_fuzz SECONDS [SEED]\n");
    return 2;
  }
  fuzz::run(seconds, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  return 0;
}
