// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: resampling of images.
#include "common/compute_dtype.h"
#include "common/structured.h"

#include <ATen/ops/_upsample_bicubic2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward_ops.h>
#include <ATen/ops/_upsample_bicubic2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_bicubic2d_aa_meta.h>
#include <ATen/ops/_upsample_bicubic2d_aa_ops.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_ops.h>
#include <ATen/ops/_upsample_bilinear2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_ops.h>
#include <ATen/ops/_upsample_lanczos2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_lanczos2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_backward_ops.h>
#include <ATen/ops/_upsample_lanczos2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_lanczos2d_aa_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_ops.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact1d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_ops.h>
#include <ATen/ops/upsample_bicubic2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_backward_meta.h>
#include <ATen/ops/upsample_bicubic2d_backward_ops.h>
#include <ATen/ops/upsample_bicubic2d_cpu_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_meta.h>
#include <ATen/ops/upsample_bicubic2d_ops.h>
#include <ATen/ops/upsample_bilinear2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_backward_meta.h>
#include <ATen/ops/upsample_bilinear2d_backward_ops.h>
#include <ATen/ops/upsample_bilinear2d_cpu_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_meta.h>
#include <ATen/ops/upsample_bilinear2d_ops.h>
#include <ATen/ops/upsample_linear1d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_linear1d_backward_meta.h>
#include <ATen/ops/upsample_linear1d_backward_ops.h>
#include <ATen/ops/upsample_linear1d_cpu_dispatch.h>
#include <ATen/ops/upsample_linear1d_meta.h>
#include <ATen/ops/upsample_linear1d_ops.h>
#include <ATen/ops/upsample_nearest1d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest1d_backward_meta.h>
#include <ATen/ops/upsample_nearest1d_backward_ops.h>
#include <ATen/ops/upsample_nearest1d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest1d_meta.h>
#include <ATen/ops/upsample_nearest1d_ops.h>
#include <ATen/ops/upsample_nearest2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest2d_backward_meta.h>
#include <ATen/ops/upsample_nearest2d_backward_ops.h>
#include <ATen/ops/upsample_nearest2d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest2d_meta.h>
#include <ATen/ops/upsample_nearest2d_ops.h>
#include <ATen/ops/upsample_nearest3d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest3d_backward_meta.h>
#include <ATen/ops/upsample_nearest3d_backward_ops.h>
#include <ATen/ops/upsample_nearest3d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest3d_meta.h>
#include <ATen/ops/upsample_nearest3d_ops.h>
#include <ATen/ops/upsample_trilinear3d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_backward_meta.h>
#include <ATen/ops/upsample_trilinear3d_backward_ops.h>
#include <ATen/ops/upsample_trilinear3d_cpu_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_meta.h>
#include <ATen/ops/upsample_trilinear3d_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED_IN(library, reduced_as_float, _upsample_bicubic2d_aa, _upsample_bicubic2d_aa_out,
                        _upsample_bicubic2d_aa)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, _upsample_bicubic2d_aa_backward,
                        _upsample_bicubic2d_aa_backward_grad_input, _upsample_bicubic2d_aa_backward)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, _upsample_bilinear2d_aa, _upsample_bilinear2d_aa_out,
                        _upsample_bilinear2d_aa)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, _upsample_bilinear2d_aa_backward,
                        _upsample_bilinear2d_aa_backward_grad_input, _upsample_bilinear2d_aa_backward)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, _upsample_lanczos2d_aa, _upsample_lanczos2d_aa_out,
                        _upsample_lanczos2d_aa)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, _upsample_lanczos2d_aa_backward,
                        _upsample_lanczos2d_aa_backward_grad_input, _upsample_lanczos2d_aa_backward)
  OPENREG_STRUCTURED(library, _upsample_nearest_exact1d, _upsample_nearest_exact1d_out, _upsample_nearest_exact1d)
  OPENREG_STRUCTURED(library, _upsample_nearest_exact1d_backward, _upsample_nearest_exact1d_backward_grad_input,
                     _upsample_nearest_exact1d_backward)
  OPENREG_STRUCTURED(library, _upsample_nearest_exact2d, _upsample_nearest_exact2d_out, _upsample_nearest_exact2d)
  OPENREG_STRUCTURED(library, _upsample_nearest_exact2d_backward, _upsample_nearest_exact2d_backward_grad_input,
                     _upsample_nearest_exact2d_backward)
  OPENREG_STRUCTURED(library, _upsample_nearest_exact3d, _upsample_nearest_exact3d_out, _upsample_nearest_exact3d)
  OPENREG_STRUCTURED(library, _upsample_nearest_exact3d_backward, _upsample_nearest_exact3d_backward_grad_input,
                     _upsample_nearest_exact3d_backward)
  OPENREG_STRUCTURED(library, upsample_bicubic2d, upsample_bicubic2d_out, upsample_bicubic2d)
  OPENREG_STRUCTURED(library, upsample_bicubic2d_backward, upsample_bicubic2d_backward_grad_input,
                     upsample_bicubic2d_backward)
  OPENREG_STRUCTURED(library, upsample_bilinear2d, upsample_bilinear2d_out, upsample_bilinear2d)
  OPENREG_STRUCTURED(library, upsample_bilinear2d_backward, upsample_bilinear2d_backward_grad_input,
                     upsample_bilinear2d_backward)
  OPENREG_STRUCTURED(library, upsample_linear1d, upsample_linear1d_out, upsample_linear1d)
  OPENREG_STRUCTURED(library, upsample_linear1d_backward, upsample_linear1d_backward_grad_input,
                     upsample_linear1d_backward)
  OPENREG_STRUCTURED(library, upsample_nearest1d, upsample_nearest1d_out, upsample_nearest1d)
  OPENREG_STRUCTURED(library, upsample_nearest1d_backward, upsample_nearest1d_backward_grad_input,
                     upsample_nearest1d_backward)
  OPENREG_STRUCTURED(library, upsample_nearest2d, upsample_nearest2d_out, upsample_nearest2d)
  OPENREG_STRUCTURED(library, upsample_nearest2d_backward, upsample_nearest2d_backward_grad_input,
                     upsample_nearest2d_backward)
  OPENREG_STRUCTURED(library, upsample_nearest3d, upsample_nearest3d_out, upsample_nearest3d)
  OPENREG_STRUCTURED(library, upsample_nearest3d_backward, upsample_nearest3d_backward_grad_input,
                     upsample_nearest3d_backward)
  OPENREG_STRUCTURED(library, upsample_trilinear3d, upsample_trilinear3d_out, upsample_trilinear3d)
  OPENREG_STRUCTURED(library, upsample_trilinear3d_backward, upsample_trilinear3d_backward_grad_input,
                     upsample_trilinear3d_backward)
}
