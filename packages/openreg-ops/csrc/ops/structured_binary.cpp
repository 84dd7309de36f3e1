// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: functions of several operands, element by element.
#include "common/structured.h"

#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_cpu_dispatch.h>
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/atan2_cpu_dispatch.h>
#include <ATen/ops/atan2_meta.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/clamp_cpu_dispatch.h>
#include <ATen/ops/clamp_max_cpu_dispatch.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/copysign_cpu_dispatch.h>
#include <ATen/ops/copysign_meta.h>
#include <ATen/ops/copysign_ops.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/fmax_cpu_dispatch.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_cpu_dispatch.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/fmod_cpu_dispatch.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/gcd_cpu_dispatch.h>
#include <ATen/ops/gcd_meta.h>
#include <ATen/ops/gcd_ops.h>
#include <ATen/ops/heaviside_cpu_dispatch.h>
#include <ATen/ops/heaviside_meta.h>
#include <ATen/ops/heaviside_ops.h>
#include <ATen/ops/hypot_cpu_dispatch.h>
#include <ATen/ops/hypot_meta.h>
#include <ATen/ops/hypot_ops.h>
#include <ATen/ops/igamma_cpu_dispatch.h>
#include <ATen/ops/igamma_meta.h>
#include <ATen/ops/igamma_ops.h>
#include <ATen/ops/igammac_cpu_dispatch.h>
#include <ATen/ops/igammac_meta.h>
#include <ATen/ops/igammac_ops.h>
#include <ATen/ops/lcm_cpu_dispatch.h>
#include <ATen/ops/lcm_meta.h>
#include <ATen/ops/lcm_ops.h>
#include <ATen/ops/lerp_cpu_dispatch.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/logaddexp2_cpu_dispatch.h>
#include <ATen/ops/logaddexp2_meta.h>
#include <ATen/ops/logaddexp2_ops.h>
#include <ATen/ops/logaddexp_cpu_dispatch.h>
#include <ATen/ops/logaddexp_meta.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/maximum_cpu_dispatch.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_cpu_dispatch.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/nextafter_cpu_dispatch.h>
#include <ATen/ops/nextafter_meta.h>
#include <ATen/ops/nextafter_ops.h>
#include <ATen/ops/pow_cpu_dispatch.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/remainder_cpu_dispatch.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/xlogy_cpu_dispatch.h>
#include <ATen/ops/xlogy_meta.h>
#include <ATen/ops/xlogy_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED_INPLACE(library, add_Tensor, add_out, add__Tensor, add)
  OPENREG_STRUCTURED_INPLACE(library, addcdiv, addcdiv_out, addcdiv_, addcdiv)
  OPENREG_STRUCTURED_INPLACE(library, addcmul, addcmul_out, addcmul_, addcmul)
  OPENREG_STRUCTURED_INPLACE(library, atan2, atan2_out, atan2_, atan2)
  OPENREG_STRUCTURED_INPLACE(library, clamp, clamp_out, clamp_, clamp)
  OPENREG_STRUCTURED_INPLACE(library, clamp_Tensor, clamp_Tensor_out, clamp__Tensor, clamp)
  OPENREG_STRUCTURED_INPLACE(library, clamp_max, clamp_max_out, clamp_max_, clamp_max)
  OPENREG_STRUCTURED_INPLACE(library, clamp_max_Tensor, clamp_max_Tensor_out, clamp_max__Tensor, clamp_max)
  OPENREG_STRUCTURED_INPLACE(library, clamp_min, clamp_min_out, clamp_min_, clamp_min)
  OPENREG_STRUCTURED_INPLACE(library, clamp_min_Tensor, clamp_min_Tensor_out, clamp_min__Tensor, clamp_min)
  OPENREG_STRUCTURED_INPLACE(library, copysign_Tensor, copysign_out, copysign__Tensor, copysign)
  OPENREG_STRUCTURED_INPLACE(library, div_Tensor, div_out, div__Tensor, div)
  OPENREG_STRUCTURED_INPLACE(library, div_Tensor_mode, div_out_mode, div__Tensor_mode, div)
  OPENREG_STRUCTURED(library, fmax, fmax_out, fmax)
  OPENREG_STRUCTURED(library, fmin, fmin_out, fmin)
  OPENREG_STRUCTURED_INPLACE(library, fmod_Tensor, fmod_Tensor_out, fmod__Tensor, fmod)
  OPENREG_STRUCTURED_INPLACE(library, gcd, gcd_out, gcd_, gcd)
  OPENREG_STRUCTURED_INPLACE(library, heaviside, heaviside_out, heaviside_, heaviside)
  OPENREG_STRUCTURED_INPLACE(library, hypot, hypot_out, hypot_, hypot)
  OPENREG_STRUCTURED_INPLACE(library, igamma, igamma_out, igamma_, igamma)
  OPENREG_STRUCTURED_INPLACE(library, igammac, igammac_out, igammac_, igammac)
  OPENREG_STRUCTURED_INPLACE(library, lcm, lcm_out, lcm_, lcm)
  OPENREG_STRUCTURED_INPLACE(library, lerp_Scalar, lerp_Scalar_out, lerp__Scalar, lerp)
  OPENREG_STRUCTURED_INPLACE(library, lerp_Tensor, lerp_Tensor_out, lerp__Tensor, lerp)
  OPENREG_STRUCTURED(library, logaddexp, logaddexp_out, logaddexp)
  OPENREG_STRUCTURED(library, logaddexp2, logaddexp2_out, logaddexp2)
  OPENREG_STRUCTURED(library, maximum, maximum_out, maximum)
  OPENREG_STRUCTURED(library, minimum, minimum_out, minimum)
  OPENREG_STRUCTURED_INPLACE(library, mul_Tensor, mul_out, mul__Tensor, mul)
  OPENREG_STRUCTURED_INPLACE(library, nextafter, nextafter_out, nextafter_, nextafter)
  OPENREG_STRUCTURED(library, pow_Scalar, pow_Scalar_out, pow)
  OPENREG_STRUCTURED_INPLACE(library, pow_Tensor_Scalar, pow_Tensor_Scalar_out, pow__Scalar, pow)
  OPENREG_STRUCTURED_INPLACE(library, pow_Tensor_Tensor, pow_Tensor_Tensor_out, pow__Tensor, pow)
  OPENREG_STRUCTURED_INPLACE(library, remainder_Tensor, remainder_Tensor_out, remainder__Tensor, remainder)
  OPENREG_STRUCTURED_INPLACE(library, sub_Tensor, sub_out, sub__Tensor, sub)
  OPENREG_STRUCTURED_INPLACE(library, xlogy_Tensor, xlogy_OutTensor, xlogy__Tensor, xlogy)
}
