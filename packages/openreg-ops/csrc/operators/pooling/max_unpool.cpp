// SPDX-License-Identifier: BSD-3-Clause
// Unpooling, which writes values to the positions where max_pool found them.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

template <int kDims>
OutputSpec meta_unpool(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef output_size) {
  at::globalContext().alertNotDeterministic(kDims == 2 ? "max_unpooling2d_forward_out" : "max_unpooling3d_forward_out");
  require_dtype((dtype_bit(self.scalar_type()) & kFloating) != 0, "max_unpooling", self.scalar_type());
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(output_size.size() == kDims, "There should be exactly ", kDims == 2 ? "two" : "three", " elements ",
              kDims == 2 ? "(height, width)" : "(depth, height, width)", " in output_size, but got ",
              output_size.size(), " elements.");
  TORCH_CHECK(self.dim() == kDims + 1 || self.dim() == kDims + 2, "Input to max_unpooling", kDims, "d should be a ",
              kDims + 1, "d or ", kDims + 2, "d Tensor, but got a tensor with dim ", self.dim());
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t i = 1; i < self.dim(); ++i) {
    TORCH_CHECK(self.size(i) > 0, "max_unpooling", kDims,
                "d(): Expected input to have non-zero size for non-batch dimensions, but got ", self.sizes(),
                " with dimension ", i, " being empty.");
  }
  OutputSpec spec = with_last_sizes(self, output_size);
  spec.format = kDims == 2 ? spec.format : c10::MemoryFormat::Contiguous;
  return spec;
}

OutputSpec meta_unpool3d(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef output_size,
                         c10::IntArrayRef stride, c10::IntArrayRef padding) {
  TORCH_CHECK(stride.size() == 3,
              "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
              " elements.");
  TORCH_CHECK(padding.size() == 3,
              "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
              " elements.");
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "strides should be greater than zero, but got stride: ", stride);
  return meta_unpool<3>(self, indices, output_size);
}

// Implements max_unpool by scatter_, because at::cpu::max_unpool* read the flag of torch.use_deterministic_algorithms()
// when they run. On a device the flag's value at the launch counts, and meta_unpool() has read it.
template <int kDims>
void unpool(const at::Tensor& self, const at::Tensor& indices, at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  if (!out.is_contiguous()) {
    out = at::empty(out.sizes(), out.options());  // the launch copies it to its place
  }
  const int64_t planes = c10::multiply_integers(out.sizes().slice(0, static_cast<size_t>(out.dim() - kDims)));
  out.zero_().view({planes, -1}).scatter_(1, indices.reshape({planes, -1}), self.reshape({planes, -1}));
}
at::Tensor& unpool2d(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef /*output_size*/,
                     at::Tensor& out) {
  unpool<2>(self, indices, out);
  return out;
}
at::Tensor& unpool3d(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef /*output_size*/,
                     c10::IntArrayRef /*stride*/, c10::IntArrayRef /*padding*/, at::Tensor& out) {
  unpool<3>(self, indices, out);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_unpool<2>, op::max_unpool2d>(library, unpool2d, kFloats);
  unstructured<meta_unpool3d, op::max_unpool3d>(library, unpool3d, kFloats);
}

}  // namespace

}  // namespace openreg::ops
