// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace openreg::distributed {

// Converts the values of a reduction to a dtype in which the transport (the c10d backend that moves bytes between
// ranks, Gloo) can calculate, and back. There is one object per call. Its functions enqueue on the current stream.
//
//   bool                 as uint8; SUM is MAX ("or") and PRODUCT is MIN ("and"), as in NCCL; not for AVG, PREMUL_SUM
//   int16, uint16        as int32
//   uint32               as int64
//   uint64               as int64; ordered as unsigned numbers by inverting the highest bit; AVG divides as unsigned
//   float8               as float32, rounded once
//   complex              as pairs of real numbers; only for SUM, AVG and PREMUL_SUM
//   everything else      as it is
class WireFormat {
 public:
  // Throws c10::Error if the operation is not defined for the dtype. `call` begins the error message.
  WireFormat(const std::string& call, const c10d::ReduceOp& operation, c10::ScalarType dtype, int ranks);

  // Returns a contiguous tensor with the values to send, multiplied by the factor of PREMUL_SUM. It has new memory if
  // `fresh` is true. Otherwise it may share the memory of `tensor`: if that is contiguous and its bytes are sent as
  // they are, as for float32, bool and complex.
  at::Tensor encode(const at::Tensor& tensor, bool fresh) const;
  // Converts the result of the transport into `output`, which may have any strides. For an average, divides it by the
  // number of ranks, toward zero for integers. May overwrite `wire`.
  void decode(const at::Tensor& wire, const at::Tensor& output) const;
  // Reduces along the first dimension on the device, for calls in which the transport only moves data. Sums and
  // products of half and bfloat16 are computed in float32, which then is the dtype of the result.
  at::Tensor reduce(const at::Tensor& wires) const;

  // Returns the name of the requested reduction, such as "SUM".
  const char* name() const noexcept;
  // Returns the reduction that the transport performs.
  c10d::ReduceOp::RedOpType operation() const noexcept { return operation_; }

 private:
  c10d::ReduceOp::RedOpType asked_;                   // The reduction that the call requests.
  c10d::ReduceOp::RedOpType operation_;               // The reduction that the transport performs.
  c10::intrusive_ptr<c10d::_SupplementBase> factor_;  // The factor of PREMUL_SUM; null for other reductions.
  c10::ScalarType dtype_;
  int ranks_;
};

}  // namespace openreg::distributed
