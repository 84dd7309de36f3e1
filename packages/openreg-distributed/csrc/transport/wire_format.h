// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace openreg::distributed {

// How the values of a reduction travel: in a dtype in which the transport can calculate. One object per call; its
// functions enqueue on the current stream.
//
//   bool                 as uint8, where a sum means "or" and a product "and", as NCCL has it
//   int16, uint16        as int32
//   uint32               as int64
//   uint64               as int64; ordered as unsigned numbers by turning the first bit
//   float8               as float32, rounded once
//   complex              as pairs of real numbers; sums only
//   everything else      as it is
class Wire {
 public:
  // Throws c10::Error where the operation is not defined for the dtype. `call` is named in errors.
  Wire(const std::string& call, const c10d::ReduceOp& operation, c10::ScalarType dtype, int ranks);

  // What each rank contributes: contiguous, and the tensor's own memory where nothing has to be converted. `fresh`:
  // never the tensor's own memory.
  at::Tensor encode(const at::Tensor& tensor, bool fresh) const;
  // The result into a tensor of any layout, divided by the number of ranks for an average. `wire` may be overwritten.
  void decode(const at::Tensor& wire, const at::Tensor& output) const;
  // Reduces along the first dimension here, for transports that only move; sums of small floats are made in float32.
  at::Tensor reduce(const at::Tensor& wires) const;

  // The reduction that was asked for: "SUM".
  const char* name() const noexcept;
  // What the transport has to do.
  c10d::ReduceOp::RedOpType operation() const noexcept { return operation_; }

 private:
  c10d::ReduceOp::RedOpType asked_;
  c10d::ReduceOp::RedOpType operation_;
  c10::intrusive_ptr<c10d::_SupplementBase> factor_;
  c10::ScalarType dtype_;
  int ranks_;
};

}  // namespace openreg::distributed
