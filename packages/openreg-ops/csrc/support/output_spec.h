// SPDX-License-Identifier: BSD-3-Clause
// The specification of an output, as meta functions return it, and the meta functions that many operators share. The
// functions of registration/unstructured.h call them.
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

// Properties of out= tensors that an operator accepts.
struct OutRules {
  bool casts = false;        // another dtype, to which PyTorch casts the result
  bool elementwise = false;  // being an operand itself
  bool overlaps = false;     // any overlap with an operand
  bool elsewhere = false;    // as `overlaps`, but the kernel writes into a new tensor, because it cannot write there
  bool expands = false;      // being an expanded tensor
  bool quiet = false;        // another size, without PyTorch's warning about the resize
};

// Sizes, dtype and strides of an output, and the properties of an out= tensor that the operator accepts.
struct OutputSpec : OutRules {
  c10::DimVector sizes;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // Undefined: the operator returns no such output
  c10::DimVector strides;                              // empty: contiguous, or dense in `format`
  c10::MemoryFormat format = c10::MemoryFormat::Contiguous;

  // Returns this specification with `rules` for out= tensors.
  OutputSpec allowing(const OutRules& rules) && {
    static_cast<OutRules&>(*this) = rules;
    return std::move(*this);
  }
};

// Returns the specification of a contiguous output.
OutputSpec output_of(c10::IntArrayRef sizes, c10::ScalarType dtype);

// Returns the specification of a contiguous output with the tensor's sizes and dtype.
OutputSpec output_of_shape(const at::Tensor& tensor);

// Returns the specification of an output like that of at::empty_like(): the tensor's sizes and order of strides, but
// dense, and its dtype unless another one is passed.
OutputSpec output_like(const at::Tensor& tensor, std::optional<c10::ScalarType> dtype = {});

// Returns the specification of an output with the tensor's sizes, except that `last` replaces the last ones. It is
// contiguous, or dense in the channels-last format that the tensor has.
OutputSpec with_last_sizes(const at::Tensor& tensor, c10::IntArrayRef last);

// Returns the specification of a 0-dim output.
OutputSpec scalar_output(c10::ScalarType dtype);

// Returns the specification of a reduction over `dims`: the tensor's sizes without them, or with 1 in their place. No
// `dims` means all. Throws c10::Error if one of them is out of range or occurs twice.
OutputSpec reduced_output(const at::Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim, c10::ScalarType dtype);

// Throws NotImplementedError, in PyTorch's words, unless `supported`. `kernel` is PyTorch's name of the CPU kernel.
void require_dtype(bool supported, const char* kernel, c10::ScalarType dtype);

// Meta functions for an output like the first operand (sizes, dtype, order of strides), and for a contiguous output of
// the first operand's shape and dtype.
constexpr auto like_first = [](const at::Tensor& self, const auto&... /*rest*/) { return output_like(self); };
constexpr auto shape_of_first = [](const at::Tensor& self, const auto&... /*rest*/) { return output_of_shape(self); };
// A meta function for in-place operators that have nothing to check.
constexpr auto unchecked = [](const auto&... /*arguments*/) {};

// Returns a new output on the current device, which is `device`, or an undefined tensor if the operator returns none.
at::Tensor allocate_output(const OutputSpec& spec, c10::Device device);

// Checks the dtype and device of an out= tensor and resizes it, as resize_out() does and with its errors. Throws
// c10::Error if PyTorch does not cast the result to its dtype.
void prepare_out_argument(const at::Tensor& out, const OutputSpec& spec, c10::Device device);

// Returns a new tensor into which the kernel writes instead of an out= tensor; the caller then copies the result to
// `out`. Returns an undefined tensor if the kernel can write into `out` itself. It cannot if `out` lies in memory
// unlike a new output, because many kernels write elements consecutively; elementwise ones do not. Nor can it if `out`
// shares memory with an operand (`shares`) and the specification sets `elsewhere`.
at::Tensor make_instead(const at::Tensor& out, const OutputSpec& spec, bool shares, c10::Device device);

// Throws c10::Error, with the operator's name, if shape or dtype of a kernel's result differ from those of the output.
// Accepts any result for an undefined output, because that output is not required. Runs in the kernel.
void check_result(const char* name, const at::Tensor& result, const at::Tensor& output);

// Same as `check_result()`, except that it also copies the result into the output, unless the result is there.
void put_result(const char* name, const at::Tensor& result, const at::Tensor& output);

// Throws c10::Error, in PyTorch's words, if an out= tensor overlaps itself and must not be an expanded tensor.
inline void check_internal_overlap(const at::Tensor& out, const OutputSpec& spec) {
  if (!spec.expands) {
    at::assert_no_internal_overlap(out);
  }
}

// Throws c10::Error, in PyTorch's words, if an out= tensor overlaps itself or an operand and the specification does not
// allow it.
template <class... Args>
void check_overlap(const at::Tensor& out, const OutputSpec& spec, const Args&... args) {
  check_internal_overlap(out, spec);
  if (spec.overlaps || spec.elsewhere) {
    return;
  }
  const auto visit = [&](const at::Tensor& operand) {
    if (spec.elementwise) {
      at::assert_no_partial_overlap(out, operand);
    } else {
      at::assert_no_overlap(out, operand);
    }
  };
  (for_each_tensor(visit, args), ...);
}

// Returns true if a tensor shares its storage with an operand.
template <class... Args>
bool shares_storage(const at::Tensor& out, const Args&... args) {
  bool shares = false;
  const auto visit = [&](const at::Tensor& operand) { shares |= operand.is_alias_of(out); };
  (for_each_tensor(visit, args), ...);
  return shares;
}

}  // namespace openreg::ops
