// SPDX-License-Identifier: BSD-3-Clause
// The dtypes that the host determines at a launch, for kernels that determine theirs again when they run.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Macros.h>

#include <optional>
#include <utility>

namespace openreg::ops {

// The default dtype of the process at the launch, and the dtype in which the kernel computes, which the meta function
// has determined. PyTorch's kernels determine their dtype again when they run, and promote integers to the default
// dtype at that time. If the default dtype has changed since the launch, integer operands must be converted before.
class LaunchDtypes {
 public:
  explicit LaunchDtypes(std::optional<c10::ScalarType> computed)
      : computed_(computed.value_or(c10::ScalarType::Undefined)) {}

  // Returns the dtype to which integer operands are converted before the kernel is called, or Undefined if they need no
  // conversion, which is the usual case. Runs where the kernel runs: on the engine thread, or on the calling thread in
  // a dry run (launch/dry_run.h).
  c10::ScalarType for_integers() const {
    const bool changed = C10_UNLIKELY(default_ != c10::get_default_dtype_as_scalartype());
    return changed && !c10::isIntegralType(computed_, /*includeBool=*/true) ? computed_ : c10::ScalarType::Undefined;
  }

 private:
  c10::ScalarType default_ = c10::get_default_dtype_as_scalartype();
  c10::ScalarType computed_ = c10::ScalarType::Undefined;
};

// Returns an argument of a kernel, with integer tensors converted to `dtype` unless it is Undefined. Valid until the
// end of the full expression, as `holder` is.
template <class T>
T&& converted(T&& argument, c10::ScalarType /*dtype*/) {
  return std::forward<T>(argument);
}
inline const at::Tensor& converted(const at::Tensor& argument, c10::ScalarType dtype, at::Tensor&& holder = {}) {
  if (C10_LIKELY(dtype == c10::ScalarType::Undefined) || !argument.defined() ||
      !c10::isIntegralType(argument.scalar_type(), /*includeBool=*/true)) {
    return argument;
  }
  holder = argument.to(dtype);
  return holder;
}

}  // namespace openreg::ops
