// SPDX-License-Identifier: BSD-3-Clause
// What a description says of an output, and the descriptions that many operators share. The functions of
// registration/described.h call them.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/DimVector.h>
#include <c10/util/OptionalArrayRef.h>

#include <optional>
#include <utility>

#include "support/device_check.h"
#include "support/overlap.h"

namespace openreg::ops {

// What an out= tensor may be.
struct OutRules {
  bool casts = false;        // whether one of another dtype will do, as far as PyTorch casts to it
  bool elementwise = false;  // whether it may be an operand itself
  bool overlaps = false;     // whether it may overlap an operand in any way
  bool elsewhere = false;    // the same, but then the result is made elsewhere, as the kernel could not write there
  bool expands = false;      // whether it may be an expanded tensor
  bool quiet = false;        // whether PyTorch resizes one of another size without a warning
};

struct OutputSpec : OutRules {
  c10::DimVector sizes;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // Undefined: the operator gives no such output
  c10::DimVector strides;                              // empty: contiguous, or dense in `format`
  c10::MemoryFormat format = c10::MemoryFormat::Contiguous;

  // The same with these rules for out= tensors.
  OutputSpec allowing(const OutRules& rules) && {
    static_cast<OutRules&>(*this) = rules;
    return std::move(*this);
  }
};

// An output of these sizes.
OutputSpec output_of(c10::IntArrayRef sizes, c10::ScalarType dtype);

// Sizes and dtype of a tensor; contiguous.
OutputSpec output_of_shape(const at::Tensor& tensor);

// Sizes, dtype and memory format of a tensor, as at::empty_like() makes it: dense in the same order. Or another dtype.
OutputSpec output_like(const at::Tensor& tensor, std::optional<c10::ScalarType> dtype = {});

// The same, the last sizes replaced, in the memory format of the tensor: contiguous, or dense in a channels-last one.
OutputSpec with_last_sizes(const at::Tensor& tensor, c10::IntArrayRef last);

// A 0-dim output.
OutputSpec scalar_output(c10::ScalarType dtype);

// The sizes of a tensor without a dimension or several, or with 1 in their places; none given means all. Checks `dims`,
// and that none stands twice.
OutputSpec reduced_output(const at::Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim, c10::ScalarType dtype);

// Throws NotImplementedError, in PyTorch's words, unless the CPU kernel (as PyTorch calls it) takes the dtype.
void require_dtype(bool supported, const char* kernel, c10::ScalarType dtype);

// Ready descriptions: the output is like the first operand (sizes, dtype, order of strides), or has its shape but is
// contiguous.
constexpr auto like_first = [](const at::Tensor& self, const auto&... /*rest*/) { return output_like(self); };
constexpr auto shape_of_first = [](const at::Tensor& self, const auto&... /*rest*/) { return output_of_shape(self); };
// Of an in-place operator that has nothing to check.
constexpr auto unchecked = [](const auto&... /*arguments*/) {};

// A new output on the current device, or an undefined tensor.
at::Tensor make_described(const OutputSpec& spec, c10::Device device);

// Checks an out= tensor and gives it the right size, as resize_out() does.
void prepare_described(const at::Tensor& out, const OutputSpec& spec, c10::Device device);

// An output for the kernel to write into instead of an out= tensor, from which the result is copied: where that one
// does not lie as a new output would, as many kernels write one element after the other; those that go element by
// element do not. And where it `shares` memory with an operand, if the rules ask for it. Else an undefined tensor.
at::Tensor make_instead(const at::Tensor& out, const OutputSpec& spec, bool shares, c10::Device device);

// On the engine: throws c10::Error that names the operator where shape or dtype of a kernel's result are not what the
// host expected. An undefined output is not wanted, and anything will do.
void check_result(const char* name, const at::Tensor& result, const at::Tensor& output);

// The same, and puts the result into the output, unless it is there.
void put_result(const char* name, const at::Tensor& result, const at::Tensor& output);

// Throws c10::Error, in PyTorch's words, where an out= tensor overlaps itself.
inline void check_internal_overlap(const at::Tensor& out, const OutputSpec& spec) {
  if (!spec.expands) {
    at::assert_no_internal_overlap(out);
  }
}

// The same where it overlaps itself or an operand.
template <class... Args>
void check_overlap(const at::Tensor& out, const OutputSpec& spec, const Args&... args) {
  check_internal_overlap(out, spec);
  if (spec.overlaps || spec.elsewhere) {
    return;
  }
  const auto visit = [&](const at::Tensor& operand) {
    spec.elementwise ? at::assert_no_partial_overlap(out, operand) : at::assert_no_overlap(out, operand);
  };
  (for_each_tensor(visit, args), ...);
}

// Whether a tensor lies in the storage of an operand.
template <class... Args>
bool shares_storage(const at::Tensor& out, const Args&... args) {
  bool shares = false;
  const auto visit = [&](const at::Tensor& operand) { shares |= operand.is_alias_of(out); };
  (for_each_tensor(visit, args), ...);
  return shares;
}

}  // namespace openreg::ops
