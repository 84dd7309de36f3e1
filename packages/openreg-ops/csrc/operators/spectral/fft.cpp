// SPDX-License-Identifier: BSD-3-Clause
// Fourier transforms. PyTorch composes all of torch.fft, torch.stft and torch.istft of these three operators.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/SpectralOpsUtils.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// Returns the specification of a dense output in the order in which the CPU's kernels leave it. Dimensions that are not
// transformed come before those that are, both in the input's order. With `last_innermost`, the last dimension is
// innermost, because it is halved.
OutputSpec transformed(const at::Tensor& self, std::vector<int64_t> sizes, c10::IntArrayRef dims, bool last_innermost,
                       c10::ScalarType dtype) {
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](int64_t dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      return 0;
    }
    return last_innermost && dim == dims.back() ? 2 : 1;
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : self.stride(a) > self.stride(b);
  });
  OutputSpec spec = output_of(sizes, dtype).allowing({.casts = true});
  spec.strides.resize(sizes.size());
  int64_t stride = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    spec.strides[*dim] = stride;
    stride *= std::max<int64_t>(sizes[*dim], 1);
  }
  return spec;
}

c10::DimVector wrap_dims(c10::IntArrayRef dims, const at::Tensor& self) {
  TORCH_CHECK(!dims.empty(), "fft: expected at least one dimension to transform, but got none");
  c10::DimVector wrapped(dims);
  at::maybe_wrap_dims(wrapped, self.dim());
  return wrapped;
}

OutputSpec meta_c2c(const at::Tensor& self, c10::IntArrayRef dim, int64_t /*normalization*/, bool /*forward*/) {
  TORCH_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", self.scalar_type());
  OutputSpec spec = dim.empty()
                        ? output_like(self)
                        : transformed(self, self.sizes().vec(), wrap_dims(dim, self), false, self.scalar_type());
  spec.overlaps = true;  // the CPU's kernel copies its result into the output
  return spec;
}

OutputSpec meta_r2c(const at::Tensor& self, c10::IntArrayRef dim, int64_t /*normalization*/, bool onesided) {
  OPENREG_CHECK_TYPE_SINCE_14(self.is_floating_point(),
                              "Only supports floating-point dtypes, but found: ", self.scalar_type());
  const c10::DimVector dims = wrap_dims(dim, self);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (onesided) {
    sizes[dims.back()] = at::native::infer_ft_real_to_complex_onesided_size(sizes[dims.back()]);
  }
  return transformed(self, std::move(sizes), dims, true, c10::toComplexType(self.scalar_type()));
}

OutputSpec meta_c2r(const at::Tensor& self, c10::IntArrayRef dim, int64_t /*normalization*/, int64_t last_dim_size) {
  TORCH_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", self.scalar_type());
  const c10::DimVector dims = wrap_dims(dim, self);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[dims.back()] = last_dim_size;
  return transformed(self, std::move(sizes), dims, true, c10::toRealValueType(self.scalar_type()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_c2c, op::_fft_c2c>(library, computed_in<reduced_as_float, cpu::_fft_c2c_outf>);
  unstructured<meta_c2r, op::_fft_c2r>(library, computed_in<reduced_as_float, cpu::_fft_c2r_outf>);
  unstructured<meta_r2c, op::_fft_r2c>(library, computed_in<reduced_as_float, cpu::_fft_r2c_outf>);
}

}  // namespace

}  // namespace openreg::ops
