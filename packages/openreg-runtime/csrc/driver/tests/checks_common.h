// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the checks: launches of C++ functions, a kernel that runs until a check ends it, a second process of this
// program.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "openreg.h"
#include "stress_common.h"

namespace checks {

using Function = std::function<void()>;

constexpr size_t kPage = 4096;  // what every system's pages are a multiple of
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCapacity = 64 * kMiB;  // OPENREG_DEVICE_MEMORY of CMakeLists.txt

#define CHECK_OK(call) CHECK((call) == orSuccess)

inline void* allocate(size_t size) {
  void* address = nullptr;
  CHECK_OK(orMalloc(&address, size));
  return address;
}

inline orStream_t make_stream(int priority = 0) {
  orStream_t stream = nullptr;
  CHECK_OK(orStreamCreateWithPriority(&stream, 0, priority));
  return stream;
}

inline void upload(void* address, const std::string& text) {
  CHECK_OK(orMemcpy(address, text.data(), text.size(), orMemcpyHostToDevice));
}

inline std::string download(const void* address, size_t size) {
  std::string text(size, '\0');
  CHECK_OK(orMemcpy(text.data(), address, size, orMemcpyDeviceToHost));
  return text;
}

inline char* view(void* address) {
  return reinterpret_cast<char*>(stress::kernel_view(address));
}

inline bool last_message_has(const char* words) {
  return std::strstr(orGetLastErrorMessage(), words) != nullptr;
}

inline orError_t run_function(void* state, char*, size_t) {
  (*static_cast<Function*>(state))();
  return orSuccess;
}

inline void launch(orStream_t stream, Function function) {
  auto* state = new Function(std::move(function));
  const orKernel kernel{"check", run_function, state, [](void* owned) { delete static_cast<Function*>(owned); }};
  CHECK_OK(orLaunchKernel(stream, &kernel));
}

// A kernel that runs until it is opened: work behind it certainly has not run.
class Gate {
 public:
  explicit Gate(orStream_t stream) {
    launch(stream, [this] {
      started_ = true;
      while (!opened_) {
        std::this_thread::yield();
      }
    });
    while (!started_) {
      std::this_thread::yield();
    }
  }
  void open() { opened_ = true; }

 private:
  std::atomic<bool> started_{false};
  std::atomic<bool> opened_{false};
};

// How this program is called again: what emulates the processor, if anything does, and the program.
inline std::string own_command;

// Runs one check in a process of its own; true when it held.
inline bool holds_elsewhere(const std::string& arguments) {
  return std::system((own_command + " " + arguments).c_str()) == 0;
}

}  // namespace checks
