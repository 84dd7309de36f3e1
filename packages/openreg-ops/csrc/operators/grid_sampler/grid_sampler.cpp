// SPDX-License-Identifier: BSD-3-Clause
// Sampling at the points of a grid, with backward.
#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

template <int kDims>
void check(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode) {
  if constexpr (kDims == 2) {
    at::native::check_grid_sampler_2d(input, grid);
  } else {
    check_grid_sampler_3d(input, grid, interpolation_mode);
  }
  at::native::check_grid_sampler_common(input, grid);
  constexpr int64_t kModes = 3;
  // PyTorch's kernels accept any number, and do not write the output for an invalid one.
  TORCH_CHECK(interpolation_mode >= 0 && interpolation_mode < kModes,
              "grid_sampler(): expected interpolation_mode to be 0 (bilinear), 1 (nearest) or 2 (bicubic), but got ",
              interpolation_mode);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(),
              "grid_sampler(): expected input and grid to have same dtype, but input has ", input.scalar_type(),
              " and grid has ", grid.scalar_type());
}

// Returns the sizes of an output with one value of every channel for each point of the grid.
template <int kDims>
c10::DimVector sampled_sizes(const at::Tensor& input, const at::Tensor& grid) {
  c10::DimVector sizes{input.size(0), input.size(1)};
  const auto points = grid.sizes().slice(1, kDims);
  sizes.insert(sizes.end(), points.begin(), points.end());
  return sizes;
}

template <int kDims>
OutputSpec meta_grid_sampler(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode,
                             int64_t /*padding_mode*/, bool /*align_corners*/) {
  check<kDims>(input, grid, interpolation_mode);
  return output_of(sampled_sizes<kDims>(input, grid), input.scalar_type());
}

template <int kDims>
std::array<OutputSpec, 2> meta_grid_sampler_backward(const at::Tensor& grad, const at::Tensor& input,
                                                     const at::Tensor& grid, int64_t interpolation_mode,
                                                     int64_t /*padding_mode*/, bool /*align_corners*/,
                                                     std::array<bool, 2> output_mask) {
  check<kDims>(input, grid, interpolation_mode);
  // Before 2.15 PyTorch's kernels read beyond a gradient of another shape.
  const c10::DimVector sizes = sampled_sizes<kDims>(input, grid);
  TORCH_CHECK_VALUE(grad.sizes() == sizes, "grid_sampler(): expected grad_output to have sizes ", sizes,
                    " but got grad_output with sizes ", grad.sizes());
  expect(kDims == 2 ? op::grid_sampler_2d_backward::name : op::grid_sampler_3d_backward::name, "grad_output", grad,
         sizes, input.scalar_type());
  return {output_mask[0] ? output_of_shape(input) : OutputSpec(), output_of_shape(grid)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_grid_sampler<2>, op::grid_sampler_2d>(library, cpu::grid_sampler_2d, kFloats);
  unstructured<meta_grid_sampler_backward<2>, op::grid_sampler_2d_backward>(library, cpu::grid_sampler_2d_backward,
                                                                            kFloats);
  unstructured<meta_grid_sampler<3>, op::grid_sampler_3d>(library, cpu::grid_sampler_3d, kFloats);
  unstructured<meta_grid_sampler_backward<3>, op::grid_sampler_3d_backward>(library, cpu::grid_sampler_3d_backward,
                                                                            kFloats);
}

}  // namespace

}  // namespace openreg::ops
