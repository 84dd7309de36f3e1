// SPDX-License-Identifier: BSD-3-Clause
// Python stacks by number. Gathering one walks the calling thread's frames and looks them up; files and lines are
// computed when a finding is reported.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace openreg::sanitizer {

// The stacks of the process. A stack stays until the process ends, and so do its code objects: a program has few places
// that launch, so a long run needs no more memory. Thread-safe.
class StackTable {
 public:
  static StackTable& instance();

  // Returns the number of the calling thread's Python stack, or 0 if the thread has none. Acquires the GIL, so the
  // caller must hold no lock whose holder may need the GIL.
  uint32_t gather() noexcept;
  // From now on gather() returns 0, because the interpreter ends. Thread-safe.
  void close() noexcept { closed_ = true; }

  // Returns the frames as tuples (file, line, function), the innermost first. The caller holds the GIL.
  pybind11::list symbolize(uint32_t stack);
  // Returns the number of stacks. Thread-safe.
  size_t size();

 private:
  struct Frame {
    PyObject* code;
    int last_instruction;
    bool operator==(const Frame&) const = default;
  };
  using Frames = std::vector<Frame>;

  std::mutex mutex_;  // a leaf: nothing is called while it is held
  std::deque<Frames> stacks_;
  std::unordered_multimap<size_t, uint32_t> numbers_;  // by hash
  std::atomic<bool> closed_{false};
};

}  // namespace openreg::sanitizer
