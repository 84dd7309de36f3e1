// SPDX-License-Identifier: BSD-3-Clause
// Differences between the releases of PyTorch that this source supports. Each is a function that hides a change of an
// interface, or a macro for something that only some releases have. To drop a release, delete its branches.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/Padding.h>

#include "openreg/runtime/torch_versions.h"

// True if PyTorch has the operator aten::cholesky.
#define OPENREG_TORCH_HAS_CHOLESKY (!OPENREG_TORCH_AT_LEAST(14))

// True if the CPU's kernels of aten::_fused_sgd_ update only the last few elements of a tensor of 16-bit floats.
#define OPENREG_TORCH_SGD_SKIPS_16_BITS (!OPENREG_TORCH_AT_LEAST(14))

// True if aten::linalg_vector_norm has a CPU function for sparse tensors.
#define OPENREG_TORCH_HAS_SPARSE_VECTOR_NORM OPENREG_TORCH_AT_LEAST(14)

// True if PyTorch has the operators aten::linalg_polar and aten::linalg_matrix_sqrth.
#define OPENREG_TORCH_HAS_POLAR_DECOMPOSITION OPENREG_TORCH_AT_LEAST(14)

// True if the operators aten::_philox_* have kernels for the CPU.
#define OPENREG_TORCH_HAS_PHILOX_KEYS OPENREG_TORCH_AT_LEAST(14)

// True if PyTorch has the operator aten::_philox_randint_.
#define OPENREG_TORCH_HAS_PHILOX_RANDINT OPENREG_TORCH_AT_LEAST(15)

// True if the CPU's kernel of aten::polar supports half.
#define OPENREG_TORCH_HAS_HALF_POLAR OPENREG_TORCH_AT_LEAST(14)

// True if GPUs have kernels for torch.fft of bfloat16, whose complex results are torch.bcomplex32. The CPU has none.
#define OPENREG_TORCH_HAS_BFLOAT16_FFT OPENREG_TORCH_AT_LEAST(15)

// True if GPUs have kernels for torch.sparse.sampled_addmm of half and bfloat16. The CPU has none.
#define OPENREG_TORCH_HAS_REDUCED_SAMPLED_ADDMM OPENREG_TORCH_AT_LEAST(15)

// Checks that throw the type of error that PyTorch's own checks throw: TypeError or NotImplementedError since the
// release in the name, RuntimeError before it.
#if OPENREG_TORCH_AT_LEAST(14)
#define OPENREG_CHECK_TYPE_SINCE_14 TORCH_CHECK_TYPE
#define OPENREG_CHECK_IMPLEMENTED_SINCE_14 TORCH_CHECK_NOT_IMPLEMENTED
#else
#define OPENREG_CHECK_TYPE_SINCE_14 TORCH_CHECK
#define OPENREG_CHECK_IMPLEMENTED_SINCE_14 TORCH_CHECK
#endif
#if OPENREG_TORCH_AT_LEAST(15)
#define OPENREG_CHECK_IMPLEMENTED_SINCE_15 TORCH_CHECK_NOT_IMPLEMENTED
#else
#define OPENREG_CHECK_IMPLEMENTED_SINCE_15 TORCH_CHECK
#endif

// The complex dtypes with 16-bit parts, for AT_EXPAND in a dispatch.
#if OPENREG_TORCH_AT_LEAST(14)
#define OPENREG_REDUCED_COMPLEX_TYPES at::kComplexHalf, at::kBComplex32
#else
#define OPENREG_REDUCED_COMPLEX_TYPES at::kComplexHalf
#endif

namespace openreg::ops {

// Returns the number as a Scalar. Scalar has no constructor for torch.bcomplex32.
template <class T>
at::Scalar to_scalar(T number) {
  return number;
}
#if OPENREG_TORCH_AT_LEAST(14)
inline at::Scalar to_scalar(c10::complex<c10::BFloat16> number) {
  return c10::complex<float>(number.real(), number.imag());
}
#endif

// Throws c10::Error unless a tensor can be padded in its last `dims` dimensions. `padding` has two numbers for each.
template <int64_t dims>
void check_padding(const at::Tensor& self, c10::IntArrayRef padding) {
#if OPENREG_TORCH_AT_LEAST(15)
  at::native::padding::check_valid_input(self, padding, dims);
#else
  at::native::padding::check_valid_input<dims>(self, padding);
#endif
}

// Throws c10::Error unless a volume can be sampled at the points of a grid. The CPU's kernels support the bicubic mode
// since 2.15.
inline void check_grid_sampler_3d(const at::Tensor& input, const at::Tensor& grid,
                                  [[maybe_unused]] int64_t interpolation_mode) {
#if OPENREG_TORCH_AT_LEAST(15)
  at::native::check_grid_sampler_3d(input, grid);
#else
  at::native::check_grid_sampler_3d(input, grid, interpolation_mode);
#endif
}

}  // namespace openreg::ops
