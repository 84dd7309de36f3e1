// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's operators on quantized tensors. Operators that make such tensors, access their parameters, or only move
// integers have files of their own.
#include "registration/cached_meta.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard quantized(c10::DispatchKey::QuantizedPrivateUse1);
  // Activations.
  cached_meta(library, {"_prelu_kernel", "clamp", "gelu", "gelu_", "hardsigmoid", "hardsigmoid.out", "hardtanh",
                        "hardtanh.out", "hardtanh_", "leaky_relu", "leaky_relu.out", "leaky_relu_", "relu", "relu_",
                        "sigmoid", "tanh", "threshold"});
  // Comparisons.
  cached_meta(library, {"eq.Scalar", "eq.Scalar_out", "eq.Tensor", "eq.Tensor_out", "ge.Scalar", "ge.Scalar_out",
                        "ge.Tensor", "ge.Tensor_out", "gt.Scalar", "gt.Scalar_out", "gt.Tensor", "gt.Tensor_out",
                        "le.Scalar", "le.Scalar_out", "le.Tensor", "le.Tensor_out", "lt.Scalar", "lt.Scalar_out",
                        "lt.Tensor", "lt.Tensor_out", "ne.Scalar", "ne.Scalar_out", "ne.Tensor", "ne.Tensor_out"});
  // Indexing and moving elements.
  cached_meta(library,
              {"_index_put_impl_", "cat", "cat.out", "channel_shuffle", "fill_.Scalar", "fill_.Tensor", "flip",
               "index.Tensor", "index_select", "index_select.out", "masked_fill_.Scalar", "masked_fill_.Tensor"});
  // Reductions and sorting.
  cached_meta(library, {"max", "max.dim", "max.unary_out", "mean.dim", "mean.out", "min", "min.dim", "min.unary_out",
                        "sort.stable", "std.correction", "std.correction_out", "topk"});
  // Layers without weights, and normalization.
  cached_meta(library, {"_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_upsample_nearest_exact2d",
                        "_upsample_nearest_exact3d", "adaptive_avg_pool3d.out", "avg_pool2d", "avg_pool3d",
                        "grid_sampler_2d", "quantized_batch_norm", "quantized_max_pool1d", "quantized_max_pool2d",
                        "quantized_max_pool3d", "reflection_pad1d.out", "reflection_pad2d", "reflection_pad2d.out",
                        "upsample_bilinear2d", "upsample_nearest2d", "upsample_nearest3d"});
}

}  // namespace

}  // namespace openreg::ops
