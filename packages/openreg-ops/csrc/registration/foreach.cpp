// SPDX-License-Identifier: BSD-3-Clause
#include "registration/foreach.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>

namespace openreg::ops {

bool is_uniform(at::TensorList list) {
  if (list.empty() || !at::isFloatingType(list[0].scalar_type())) {
    return false;
  }
  return std::all_of(list.begin(), list.end(), [&](const at::Tensor& tensor) {
    return tensor.device() == list[0].device() && tensor.scalar_type() == list[0].scalar_type() &&
           tensor.is_non_overlapping_and_dense();
  });
}

bool fits(at::TensorList list, at::TensorList other) {
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
    return a.device() == b.device() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
  };
  return std::equal(list.begin(), list.end(), other.begin(), other.end(), alike);
}
bool fits(at::TensorList list, const at::Tensor& number) {
  return number.dim() == 0 && number.scalar_type() == list[0].scalar_type() &&
         (number.device().is_cpu() || number.device() == list[0].device());
}
bool fits(at::TensorList /*list*/, const at::Scalar& number) {
  return !number.isComplex() && !number.isBoolean();
}
bool fits(at::TensorList list, at::ArrayRef<at::Scalar> numbers) {
  return numbers.size() == list.size() &&
         std::all_of(numbers.begin(), numbers.end(), [&](const at::Scalar& number) { return fits(list, number); });
}
bool fits(at::TensorList /*list*/, bool /*option*/) {
  return true;
}

bool overlaps_partly(at::TensorList written, at::TensorList read) {
  return !std::equal(written.begin(), written.end(), read.begin(), read.end(),
                     [](const at::Tensor& a, const at::Tensor& b) {
                       return at::get_overlap_status(a, b) != at::MemOverlapStatus::Partial;
                     });
}

}  // namespace openreg::ops
