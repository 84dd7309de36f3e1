// SPDX-License-Identifier: BSD-3-Clause
// AliasPool keeps the tensors of aliases whose launch has ended, so that an engine thread does not allocate and free
// two objects per operand: a tensor and its storage. Without it they take more time than a kernel of few elements.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>

#include <array>
#include <cstddef>
#include <utility>

namespace openreg::runtime {

// A stack of strided CPU tensors, each over a storage that has no other tensor. Belongs to one thread.
class AliasPool {
 public:
  // Returns the pool of the calling thread, or null if it has none.
  static AliasPool* of_thread();

  // Makes this pool the calling thread's, which must be in inference mode as long as the pool exists.
  AliasPool();
  ~AliasPool();
  AliasPool(const AliasPool&) = delete;
  AliasPool& operator=(const AliasPool&) = delete;

  // Returns a tensor, or an undefined one if the pool is empty. All that set_sizes_and_strides() does not set is as in
  // a new tensor, except for its storage and its dtype.
  at::Tensor take() { return size_ == 0 ? at::Tensor() : std::move(tensors_[--size_]); }
  // Keeps a tensor, unless the pool is full, something else refers to the tensor or its storage, or a kernel has
  // changed what set_sizes_and_strides() does not set.
  void give(at::Tensor&& tensor);

 private:
  static constexpr size_t kMost = 16;  // more than the operands of nearly all kernels

  std::array<at::Tensor, kMost> tensors_;
  size_t size_ = 0;
  const c10::DispatchKeySet keys_;  // of a new tensor of this thread
};

}  // namespace openreg::runtime
