// SPDX-License-Identifier: BSD-3-Clause
#include "transport/wire_format.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <limits>

namespace openreg::distributed {

namespace {

using Op = c10d::ReduceOp;

const char* name_of(Op::RedOpType operation) {
  switch (operation) {
    case Op::SUM:
      return "SUM";
    case Op::AVG:
      return "AVG";
    case Op::PRODUCT:
      return "PRODUCT";
    case Op::MIN:
      return "MIN";
    case Op::MAX:
      return "MAX";
    case Op::BAND:
      return "BAND";
    case Op::BOR:
      return "BOR";
    case Op::BXOR:
      return "BXOR";
    case Op::PREMUL_SUM:
      return "PREMUL_SUM";
    case Op::UNUSED:
      break;
  }
  return "an unknown operation";
}

bool is_bitwise(Op::RedOpType operation) {
  return operation == Op::BAND || operation == Op::BOR || operation == Op::BXOR;
}

bool is_known(c10::ScalarType dtype) {
  return dtype == c10::kBool || c10::isIntegralType(dtype, false) || c10::isFloatingType(dtype) ||
         c10::isComplexType(dtype);
}

// Returns the reduction of the transport whose result WireFormat::decode() converts into that of `operation`.
Op::RedOpType for_transport(Op::RedOpType operation, c10::ScalarType dtype) {
  if (operation == Op::AVG || operation == Op::PREMUL_SUM) {
    return Op::SUM;
  }
  if (dtype == c10::kBool) {
    return operation == Op::SUM ? Op::MAX : operation == Op::PRODUCT ? Op::MIN : operation;
  }
  return operation;
}

// Divides unsigned numbers, given as int64, by a positive one. From 2^63 on, at::div() would take them for negative.
at::Tensor unsigned_quotient(const at::Tensor& values, int64_t divisor) {
  const at::Tensor half = values.bitwise_right_shift(1).bitwise_and(std::numeric_limits<int64_t>::max());
  // This is too small by at most 1, because the halves have lost the lowest bit and the division its remainder.
  const at::Tensor quotient = half.div(divisor, "trunc").mul(2);
  return quotient.add(values.sub(quotient.mul(divisor)).div(divisor, "trunc"));
}

}  // namespace

WireFormat::WireFormat(const std::string& call, const Op& operation, c10::ScalarType dtype, int ranks)
    : asked_(operation.op_),
      operation_(for_transport(operation.op_, dtype)),
      factor_(operation.supplement_),
      dtype_(dtype),
      ranks_(ranks) {
  const char* name = name_of(asked_);
  TORCH_CHECK_TYPE(is_known(dtype), call, ": values of dtype ", dtype, " cannot be reduced; convert them first");
  TORCH_CHECK_TYPE(!is_bitwise(asked_) || c10::isIntegralType(dtype, true), call, ": ReduceOp.", name,
                   " is for integers and bool, not for ", dtype, "; reduce with SUM, MIN or MAX, or convert");
  TORCH_CHECK_TYPE(!c10::isComplexType(dtype) || operation_ == Op::SUM, call, ": ReduceOp.", name,
                   " is not defined for ", dtype, "; reduce with SUM or AVG, or torch.view_as_real() of the tensor");
  TORCH_CHECK_TYPE(dtype != c10::kBool || (asked_ != Op::AVG && asked_ != Op::PREMUL_SUM), call, ": ReduceOp.", name,
                   " is not defined for bool; convert to a number first");
  TORCH_CHECK(asked_ != Op::PREMUL_SUM || factor_ != nullptr, call,
              ": ReduceOp.PREMUL_SUM has no factor; make it with torch.distributed._make_nccl_premul_sum()");
}

const char* WireFormat::name() const noexcept {
  return name_of(asked_);
}

at::Tensor WireFormat::encode(const at::Tensor& tensor, bool fresh) const {
  at::Tensor values = tensor.resolve_conj().resolve_neg();
  if (asked_ == Op::PREMUL_SUM) {
    const auto& factor = static_cast<const c10d::PreMulSumSupplement&>(*factor_);
    values = factor.tensor_factor.defined() ? at::mul(values, factor.tensor_factor.to(values.device(), dtype_))
                                            : at::mul(values, factor.double_factor);
  }
  values = values.contiguous();
  if (c10::isComplexType(dtype_)) {
    values = at::view_as_real(values);
  } else if (dtype_ == c10::kBool) {
    values = values.view(c10::kByte);
  } else if (dtype_ == c10::kShort || dtype_ == c10::kUInt16) {
    values = values.to(c10::kInt);
  } else if (dtype_ == c10::kUInt32) {
    values = values.to(c10::kLong);
  } else if (dtype_ == c10::kUInt64) {
    values = values.view(c10::kLong);
    if (operation_ == Op::MIN || operation_ == Op::MAX) {
      values = values.bitwise_xor(std::numeric_limits<int64_t>::min());
    }
  } else if (c10::isFloat8Type(dtype_)) {
    values = values.to(c10::kFloat);
  }
  return fresh && values.is_alias_of(tensor) ? values.clone() : values;
}

void WireFormat::decode(const at::Tensor& wire, const at::Tensor& output) const {
  at::Tensor values = wire;
  if (asked_ == Op::AVG) {
    if (dtype_ == c10::kUInt64) {
      values = unsigned_quotient(values, ranks_);
    } else if (c10::isIntegralType(values.scalar_type(), false)) {
      values.div_(ranks_, "trunc");
    } else {
      values.div_(ranks_);
    }
  }
  if (c10::isComplexType(dtype_)) {
    values = at::view_as_complex(values.reshape({-1, 2}));
  } else if (dtype_ == c10::kBool) {
    values = values.view(c10::kBool);
  } else if (dtype_ == c10::kUInt64) {
    if (operation_ == Op::MIN || operation_ == Op::MAX) {
      values = values.bitwise_xor(std::numeric_limits<int64_t>::min());
    }
    values = values.view(c10::kUInt64);
  }
  if (!values.is_alias_of(output)) {
    output.copy_(values.view(output.sizes()));
  }
}

at::Tensor WireFormat::reduce(const at::Tensor& wires) const {
  const bool small = wires.scalar_type() == c10::kHalf || wires.scalar_type() == c10::kBFloat16;
  const c10::ScalarType result = small ? c10::kFloat : wires.scalar_type();
  switch (operation_) {
    case Op::SUM:
      return at::sum(wires, 0, false, result);
    case Op::PRODUCT:
      return at::prod(wires, 0, false, result);
    case Op::MIN:
      return at::amin(wires, 0);
    case Op::MAX:
      return at::amax(wires, 0);
    default:
      break;
  }
  at::Tensor all = wires.select(0, 0).clone();
  for (int64_t i = 1; i < wires.size(0); ++i) {
    const at::Tensor next = wires.select(0, i);
    if (operation_ == Op::BAND) {
      all.bitwise_and_(next);
    } else if (operation_ == Op::BOR) {
      all.bitwise_or_(next);
    } else {
      all.bitwise_xor_(next);
    }
  }
  return all;
}

}  // namespace openreg::distributed
