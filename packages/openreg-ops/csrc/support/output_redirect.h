// SPDX-License-Identifier: BSD-3-Clause
// A guard for CPU kernels that allocate their own result. It redirects the allocation to the memory of the output, so
// that the result need not be copied.
//
// Such a kernel calls at::empty or at::empty_strided. While an OutputRedirectGuard lives, a call of its thread that
// requests exactly the size, strides and dtype of an output gets the output's memory, each output once. The kernel then
// usually returns the output itself. But it may have used the memory for a temporary, or may return another tensor.
// put() detects this and copies, so the guard only saves time. If another library uses the dispatch key that the guard
// requires (DeferredInit), every result is copied.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <initializer_list>

namespace openreg::ops {

// A redirection of the calling thread's allocations, until put() or the destructor. Guards of one thread may be nested;
// only the innermost one redirects, so a guard without outputs suspends the outer ones. Not thread-safe.
class OutputRedirectGuard {
 public:
  // Takes at most kMost outputs, which are aliases (CPU tensors over the bytes of device tensors) and may be undefined.
  // They must not overlap an operand. `buffer` is a 1-dimensional tensor. The first request for a 1-dimensional tensor
  // of its dtype with at most as many elements gets its memory. put() ignores it.
  explicit OutputRedirectGuard(std::initializer_list<at::Tensor> outputs, at::Tensor buffer = {});
  ~OutputRedirectGuard();

  OutputRedirectGuard(const OutputRedirectGuard&) = delete;
  OutputRedirectGuard& operator=(const OutputRedirectGuard&) = delete;

  // Ends the redirection, and copies each result into the output at the same position in the list, unless the result
  // already lies in that output's memory. A result may be undefined if its output is.
  void put(std::initializer_list<at::Tensor> results);

  // Called by the kernels of at::empty and at::empty_strided for the guard's dispatch key. Returns a tensor for a
  // request of this size and dtype, or an undefined one if no memory fits. The request is for `strides`, or without
  // them for a dense tensor in `format`.
  at::Tensor take(c10::IntArrayRef size, at::OptionalIntArrayRef strides, c10::ScalarType dtype,
                  c10::MemoryFormat format);

 private:
  static constexpr size_t kMost = 6;

  void end();

  std::array<at::Tensor, kMost> outputs_;
  std::array<bool, kMost> taken_{};
  at::Tensor buffer_;
  OutputRedirectGuard* outer_;
  bool active_;
};

}  // namespace openreg::ops
