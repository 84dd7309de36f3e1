// SPDX-License-Identifier: BSD-3-Clause
// Padding by reflection and replication, with backward.
#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

OutputSpec meta_reflection(const at::Tensor& self, c10::IntArrayRef padding) {
  check_padding<2>(self, padding);
  const int64_t height = self.size(-2);
  const int64_t width = self.size(-1);
  TORCH_CHECK(padding[0] < width && padding[1] < width,
              "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[0], ", ", padding[1], ") at dimension ", self.dim() - 1, " of input ", self.sizes());
  TORCH_CHECK(padding[2] < height && padding[3] < height,
              "Argument #6: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[2], ", ", padding[3], ") at dimension ", self.dim() - 2, " of input ", self.sizes());
  const int64_t out_height = height + padding[2] + padding[3];
  const int64_t out_width = width + padding[0] + padding[1];
  TORCH_CHECK(out_width >= 1 || out_height >= 1, "input (H: ", height, ", W: ", width,
              ") is too small. Calculated output H: ", out_height, " W: ", out_width);
  return with_last_sizes(self, {out_height, out_width});
}

// Throws c10::Error unless the gradient has the shape of the forward operator's output. kForwardSizes returns it, from
// PyTorch's meta function or ours.
template <class Backward, auto kForwardSizes>
void check_gradient(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef padding) {
  expect(Backward::name, "grad_output", grad, kForwardSizes(self, padding), self.scalar_type());
}

template <class Meta>
c10::DimVector padded_sizes(const at::Tensor& self, c10::IntArrayRef padding) {
  return output_sizes<Meta>(self, padding);
}
c10::DimVector reflected_sizes(const at::Tensor& self, c10::IntArrayRef padding) {
  return meta_reflection(self, padding).sizes;
}

// The derivative has the shape of the input and its memory format.
template <class Backward, auto kForwardSizes>
OutputSpec meta_padding_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef padding) {
  check_gradient<Backward, kForwardSizes>(grad, self, padding);
  return with_last_sizes(self, {}).allowing({.elsewhere = true});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kForward{.refused = kBoolean};
  constexpr KernelTraits kBackward{.refused = kBoolean | kIntegers, .dtype_match = DtypeMatch::kAll};
  structured<meta::structured_reflection_pad1d, op::reflection_pad1d>(library, cpu::reflection_pad1d_outf, kForward);
  structured<meta::structured_reflection_pad1d_backward, op::reflection_pad1d_backward>(
      library, cpu::reflection_pad1d_backward_outf, kBackward,
      {.check = check_gradient<op::reflection_pad1d_backward, padded_sizes<meta::structured_reflection_pad1d>>});
  unstructured<meta_reflection, op::reflection_pad2d>(library, cpu::reflection_pad2d_outf, kForward);
  unstructured<meta_padding_backward<op::reflection_pad2d_backward, reflected_sizes>, op::reflection_pad2d_backward>(
      library, cpu::reflection_pad2d_backward_outf, kBackward);
  structured<meta::structured_reflection_pad3d, op::reflection_pad3d>(library, cpu::reflection_pad3d_outf, kForward);
  structured<meta::structured_reflection_pad3d_backward, op::reflection_pad3d_backward>(
      library, cpu::reflection_pad3d_backward_outf, kBackward,
      {.check = check_gradient<op::reflection_pad3d_backward, padded_sizes<meta::structured_reflection_pad3d>>});
  structured<meta::structured_replication_pad1d, op::replication_pad1d>(library, cpu::replication_pad1d_outf, kForward);
  structured<meta::structured_replication_pad1d_backward, op::replication_pad1d_backward>(
      library, cpu::replication_pad1d_backward_outf, kBackward,
      {.check = check_gradient<op::replication_pad1d_backward, padded_sizes<meta::structured_replication_pad1d>>});
  structured<meta::structured_replication_pad2d, op::replication_pad2d>(library, cpu::replication_pad2d_outf, kForward);
  unstructured<meta_padding_backward<op::replication_pad2d_backward, padded_sizes<meta::structured_replication_pad2d>>,
               op::replication_pad2d_backward>(library, cpu::replication_pad2d_backward_outf, kBackward);
  structured<meta::structured_replication_pad3d, op::replication_pad3d>(library, cpu::replication_pad3d_outf, kForward);
  unstructured<meta_padding_backward<op::replication_pad3d_backward, padded_sizes<meta::structured_replication_pad3d>>,
               op::replication_pad3d_backward>(library, cpu::replication_pad3d_backward_outf, kBackward);
}

}  // namespace

}  // namespace openreg::ops
