// SPDX-License-Identifier: BSD-3-Clause
// A table that gives each Python stack a number. Capturing a stack walks the frames of the calling thread and looks
// them up in a table. Files and lines are computed when a finding is reported.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace openreg::sanitizer {

// The stacks of the process by number, from 1 on. A stack and its code objects stay until the process ends. Equal
// stacks share a number, and a program launches from a limited number of places, so a longer run needs no more memory.
// Thread-safe.
class StackTable {
 public:
  static StackTable& instance();

  // Returns the number of the calling thread's Python stack (its innermost frames, at most kMaxFrames in stacks.cpp),
  // or 0 if the thread runs no Python or memory is exhausted. Acquires the GIL, so the caller must not hold a lock that
  // another thread acquires while it holds the GIL.
  uint32_t gather() noexcept;
  // Makes gather() return 0 until open() is called, because the interpreter is about to be finalized, or because this
  // process was forked.
  void close() noexcept { closed_ = true; }
  // Makes gather() return stacks again: a process that was forked before its parent used the device may use it.
  void open() noexcept { closed_ = false; }

  // Returns the frames of a stack as tuples (file, line, function), the innermost first. The caller holds the GIL.
  pybind11::list symbolize(uint32_t stack);
  // Returns the number of stacks.
  size_t size();

 private:
  // A position in a code object.
  struct RawFrame {
    PyObject* code;
    int last_instruction;  // offset in bytes
    bool operator==(const RawFrame&) const = default;
  };
  using RawFrames = std::vector<RawFrame>;

  static size_t walk(PyThreadState* thread, std::span<RawFrame> frames);
  static size_t hash_of(std::span<const RawFrame> frames);
  uint32_t find(std::span<const RawFrame> frames, size_t hash) const;
  bool intern(std::span<const RawFrame> frames, uint32_t& number);

  std::mutex mutex_;  // no other lock is acquired, and no Python code runs, while it is held
  std::deque<RawFrames> stacks_;
  std::unordered_multimap<size_t, uint32_t> numbers_;  // by hash
  std::atomic<bool> closed_{false};
};

}  // namespace openreg::sanitizer
