// SPDX-License-Identifier: BSD-3-Clause
// CPU kernels that make their own result: how the result lands in the output instead of being copied there.
//
// Such a kernel calls at::empty or at::empty_strided. While a ResultsInPlace lives, the thread's calls that ask for
// exactly the size, strides and dtype of an output get the output's memory, each output once. What the kernel returns
// is then, most often, the output itself. It need not be: the kernel may have used the memory for a temporary, or
// returned something else. put() finds that out and copies, so the mechanism is about time only. In a process where
// another library has the dispatch key that it needs, every result is copied.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <initializer_list>

namespace openreg::ops {

class ResultsInPlace {
 public:
  // At most kMost outputs, which are aliases on an engine and may be undefined. They must overlap no operand. A buffer,
  // of one dimension, serves one request of its dtype for one dimension that is no longer; put() takes no heed of it.
  explicit ResultsInPlace(std::initializer_list<at::Tensor> outputs, at::Tensor buffer = {});
  ~ResultsInPlace();

  ResultsInPlace(const ResultsInPlace&) = delete;
  ResultsInPlace& operator=(const ResultsInPlace&) = delete;

  // Ends the redirection and puts each result into the output of the same position. A result may be undefined where its
  // output is.
  void put(std::initializer_list<at::Tensor> results);

  // A tensor for a request of this size and dtype, with these strides where they are given, else dense in the format;
  // undefined where nothing fits.
  at::Tensor take(c10::IntArrayRef size, at::OptionalIntArrayRef strides, c10::ScalarType dtype,
                  c10::MemoryFormat format);

 private:
  static constexpr size_t kMost = 6;

  void end();

  std::array<at::Tensor, kMost> outputs_;
  std::array<bool, kMost> taken_{};
  at::Tensor buffer_;
  ResultsInPlace* outer_;
  bool active_;
};

}  // namespace openreg::ops
