// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the tests in checks.cpp: launches of C++ functions as kernels, a kernel that runs until the test ends it,
// and runs of this program in a second process.
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

constexpr size_t kPage = 4096;  // the page size of every system is a multiple of it
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCapacity = 64 * kMiB;  // CMakeLists.txt sets OPENREG_DEVICE_MEMORY to it

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

// A kernel that runs until open() is called, so that later tasks of its stream cannot run before.
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

// The command that starts this program again: the processor's emulator, if there is one, and the program.
inline std::string own_command;

// Runs one check in a process of its own. Returns true if it succeeds.
inline bool holds_elsewhere(const std::string& arguments) {
  return std::system((own_command + " " + arguments).c_str()) == 0;
}

}  // namespace checks
