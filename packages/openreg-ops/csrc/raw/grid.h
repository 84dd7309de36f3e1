// SPDX-License-Identifier: BSD-3-Clause
// How a kernel spreads over the cores of the engine.
//
// REAL HW: the launch grid of the chip; a range of items is what one block of threads does.
#pragma once

#include <cstdint>
#include <type_traits>

namespace openreg::ops::raw {

// Calls `body(context, begin, end)` for ranges that together cover [0, count), each of at least `grain` items but the
// last, on the threads of the engine, and returns when all are done. How the items are cut into ranges depends on the
// number of threads; what one item gives must not. An exception of one range is thrown here.
void run_grid(int64_t count, int64_t grain, void* context, void (*body)(void* context, int64_t begin, int64_t end));

// The same for a callable `body(begin, end)`.
template <class Body>
void parallel(int64_t count, int64_t grain, Body&& body) {
  using Callable = std::remove_reference_t<Body>;
  run_grid(count, grain, &body,
           [](void* context, int64_t begin, int64_t end) { (*static_cast<Callable*>(context))(begin, end); });
}

// While it lives, the calling thread of the engine spreads nothing over others, whatever kernel it runs. Without OpenMP
// it does nothing.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  OneThread(OneThread&&) = delete;
  OneThread& operator=(OneThread&&) = delete;

 private:
  [[maybe_unused]] int before_;  // without OpenMP
};

}  // namespace openreg::ops::raw
