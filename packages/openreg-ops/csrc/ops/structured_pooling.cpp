// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: pooling, padding and what works on windows.
#include "common/compute_dtype.h"
#include "common/structured.h"

#include <ATen/ops/adaptive_max_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool2d_backward_ops.h>
#include <ATen/ops/adaptive_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_meta.h>
#include <ATen/ops/adaptive_max_pool2d_ops.h>
#include <ATen/ops/adaptive_max_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool3d_backward_ops.h>
#include <ATen/ops/adaptive_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_meta.h>
#include <ATen/ops/adaptive_max_pool3d_ops.h>
#include <ATen/ops/avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_backward_meta.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_backward_meta.h>
#include <ATen/ops/avg_pool3d_backward_ops.h>
#include <ATen/ops/avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_meta.h>
#include <ATen/ops/avg_pool3d_ops.h>
#include <ATen/ops/fractional_max_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool2d_backward_meta.h>
#include <ATen/ops/fractional_max_pool2d_backward_ops.h>
#include <ATen/ops/fractional_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool2d_meta.h>
#include <ATen/ops/fractional_max_pool2d_ops.h>
#include <ATen/ops/fractional_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool3d_meta.h>
#include <ATen/ops/fractional_max_pool3d_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_backward_meta.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/reflection_pad1d_backward_cpu_dispatch.h>
#include <ATen/ops/reflection_pad1d_backward_meta.h>
#include <ATen/ops/reflection_pad1d_backward_ops.h>
#include <ATen/ops/reflection_pad1d_cpu_dispatch.h>
#include <ATen/ops/reflection_pad1d_meta.h>
#include <ATen/ops/reflection_pad1d_ops.h>
#include <ATen/ops/reflection_pad3d_backward_cpu_dispatch.h>
#include <ATen/ops/reflection_pad3d_backward_meta.h>
#include <ATen/ops/reflection_pad3d_backward_ops.h>
#include <ATen/ops/reflection_pad3d_cpu_dispatch.h>
#include <ATen/ops/reflection_pad3d_meta.h>
#include <ATen/ops/reflection_pad3d_ops.h>
#include <ATen/ops/replication_pad1d_backward_cpu_dispatch.h>
#include <ATen/ops/replication_pad1d_backward_meta.h>
#include <ATen/ops/replication_pad1d_backward_ops.h>
#include <ATen/ops/replication_pad1d_cpu_dispatch.h>
#include <ATen/ops/replication_pad1d_meta.h>
#include <ATen/ops/replication_pad1d_ops.h>
#include <ATen/ops/replication_pad2d_cpu_dispatch.h>
#include <ATen/ops/replication_pad2d_meta.h>
#include <ATen/ops/replication_pad2d_ops.h>
#include <ATen/ops/replication_pad3d_cpu_dispatch.h>
#include <ATen/ops/replication_pad3d_meta.h>
#include <ATen/ops/replication_pad3d_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED(library, adaptive_max_pool2d, adaptive_max_pool2d_out, adaptive_max_pool2d)
  OPENREG_STRUCTURED(library, adaptive_max_pool2d_backward, adaptive_max_pool2d_backward_grad_input,
                     adaptive_max_pool2d_backward)
  OPENREG_STRUCTURED(library, adaptive_max_pool3d, adaptive_max_pool3d_out, adaptive_max_pool3d)
  OPENREG_STRUCTURED(library, adaptive_max_pool3d_backward, adaptive_max_pool3d_backward_grad_input,
                     adaptive_max_pool3d_backward)
  OPENREG_STRUCTURED(library, avg_pool2d, avg_pool2d_out, avg_pool2d)
  OPENREG_STRUCTURED(library, avg_pool2d_backward, avg_pool2d_backward_grad_input, avg_pool2d_backward)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, avg_pool3d, avg_pool3d_out, avg_pool3d)
  OPENREG_STRUCTURED_IN(library, reduced_as_float, avg_pool3d_backward, avg_pool3d_backward_grad_input,
                        avg_pool3d_backward)
  OPENREG_STRUCTURED(library, fractional_max_pool2d, fractional_max_pool2d_output, fractional_max_pool2d)
  OPENREG_STRUCTURED(library, fractional_max_pool2d_backward, fractional_max_pool2d_backward_grad_input,
                     fractional_max_pool2d_backward)
  OPENREG_STRUCTURED(library, fractional_max_pool3d, fractional_max_pool3d_output, fractional_max_pool3d)
  OPENREG_STRUCTURED(library, max_pool2d_with_indices, max_pool2d_with_indices_out, max_pool2d_with_indices)
  OPENREG_STRUCTURED(library, max_pool2d_with_indices_backward, max_pool2d_with_indices_backward_grad_input,
                     max_pool2d_with_indices_backward)
  OPENREG_STRUCTURED(library, reflection_pad1d, reflection_pad1d_out, reflection_pad1d)
  OPENREG_STRUCTURED(library, reflection_pad1d_backward, reflection_pad1d_backward_grad_input,
                     reflection_pad1d_backward)
  OPENREG_STRUCTURED(library, reflection_pad3d, reflection_pad3d_out, reflection_pad3d)
  OPENREG_STRUCTURED(library, reflection_pad3d_backward, reflection_pad3d_backward_grad_input,
                     reflection_pad3d_backward)
  OPENREG_STRUCTURED(library, replication_pad1d, replication_pad1d_out, replication_pad1d)
  OPENREG_STRUCTURED(library, replication_pad1d_backward, replication_pad1d_backward_grad_input,
                     replication_pad1d_backward)
  OPENREG_STRUCTURED(library, replication_pad2d, replication_pad2d_out, replication_pad2d)
  OPENREG_STRUCTURED(library, replication_pad3d, replication_pad3d_out, replication_pad3d)
}
