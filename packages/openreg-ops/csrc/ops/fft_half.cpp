// SPDX-License-Identifier: BSD-3-Clause
// torch.fft of half-precision numbers. PyTorch composes torch.fft from three operators (fft.cpp), but refuses half
// before it comes to them on every device that is not one of its own. So the composite operators are overridden here:
// half is computed in float and rounded, and everything else goes on as PyTorch composes it.
#include <ATen/ops/fft_fft2_native.h>
#include <ATen/ops/fft_fft2_ops.h>
#include <ATen/ops/fft_fft_native.h>
#include <ATen/ops/fft_fft_ops.h>
#include <ATen/ops/fft_fftn_native.h>
#include <ATen/ops/fft_fftn_ops.h>
#include <ATen/ops/fft_hfft2_native.h>
#include <ATen/ops/fft_hfft2_ops.h>
#include <ATen/ops/fft_hfft_native.h>
#include <ATen/ops/fft_hfft_ops.h>
#include <ATen/ops/fft_hfftn_native.h>
#include <ATen/ops/fft_hfftn_ops.h>
#include <ATen/ops/fft_ifft2_native.h>
#include <ATen/ops/fft_ifft2_ops.h>
#include <ATen/ops/fft_ifft_native.h>
#include <ATen/ops/fft_ifft_ops.h>
#include <ATen/ops/fft_ifftn_native.h>
#include <ATen/ops/fft_ifftn_ops.h>
#include <ATen/ops/fft_ihfft2_native.h>
#include <ATen/ops/fft_ihfft2_ops.h>
#include <ATen/ops/fft_ihfft_native.h>
#include <ATen/ops/fft_ihfft_ops.h>
#include <ATen/ops/fft_ihfftn_native.h>
#include <ATen/ops/fft_ihfftn_ops.h>
#include <ATen/ops/fft_irfft2_native.h>
#include <ATen/ops/fft_irfft2_ops.h>
#include <ATen/ops/fft_irfft_native.h>
#include <ATen/ops/fft_irfft_ops.h>
#include <ATen/ops/fft_irfftn_native.h>
#include <ATen/ops/fft_irfftn_ops.h>
#include <ATen/ops/fft_rfft2_native.h>
#include <ATen/ops/fft_rfft2_ops.h>
#include <ATen/ops/fft_rfft_native.h>
#include <ATen/ops/fft_rfft_ops.h>
#include <ATen/ops/fft_rfftn_native.h>
#include <ATen/ops/fft_rfftn_ops.h>
#include <torch/library.h>

#include "common/compute_dtype.h"
#include "common/structured.h"

namespace openreg::ops {

namespace {

// kComposite is PyTorch's own function for the operator.
template <auto kComposite, class Composite = decltype(kComposite)>
struct HalfFft;

template <auto kComposite, class... Options>
struct HalfFft<kComposite, at::Tensor (*)(const at::Tensor&, Options...)> {
  static at::Tensor functional(const at::Tensor& self, Options... options) {
    if (self.scalar_type() != at::kHalf) {
      return kComposite(self, options...);
    }
    const at::Tensor result = kComposite(self.to(at::kFloat), options...);
    return result.to(result.is_complex() ? at::kComplexHalf : at::kHalf);
  }

  template <auto kCompositeOut>
  static at::Tensor& out(const at::Tensor& self, Options... options, at::Tensor& out) {
    if (self.scalar_type() != at::kHalf) {
      return kCompositeOut(self, options..., out);
    }
    constexpr const char* kName = "torch.fft";
    check_same_device(kName, device_of(kName, self, out), self, out);
    at::Tensor wide = out.to(reduced_as_float(out.scalar_type()));
    kCompositeOut(self.to(at::kFloat), options..., wide);  // warns where the size is wrong
    return out.resize_(wide.sizes()).copy_(wide);
  }
};

// Autograd sees through the override as it sees through the composite: each operator within is recorded.
#define OPENREG_HALF_FFT(library, op)                                                                                 \
  (library).impl(registered_name<at::_ops::op>().c_str(), TORCH_FN((HalfFft<&at::native::op##_symint>::functional))); \
  (library).impl(registered_name<at::_ops::op##_out>().c_str(),                                                       \
                 TORCH_FN((HalfFft<&at::native::op##_symint>::out<&at::native::op##_symint_out>)));

void register_half(torch::Library& library){
    OPENREG_HALF_FFT(library, fft_fft) OPENREG_HALF_FFT(library, fft_fft2) OPENREG_HALF_FFT(library, fft_fftn)
        OPENREG_HALF_FFT(library, fft_hfft) OPENREG_HALF_FFT(library, fft_hfft2) OPENREG_HALF_FFT(library, fft_hfftn)
            OPENREG_HALF_FFT(library, fft_ifft) OPENREG_HALF_FFT(library, fft_ifft2)
                OPENREG_HALF_FFT(library, fft_ifftn) OPENREG_HALF_FFT(library, fft_ihfft)
                    OPENREG_HALF_FFT(library, fft_ihfft2) OPENREG_HALF_FFT(library, fft_ihfftn)
                        OPENREG_HALF_FFT(library, fft_irfft) OPENREG_HALF_FFT(library, fft_irfft2)
                            OPENREG_HALF_FFT(library, fft_irfftn) OPENREG_HALF_FFT(library, fft_rfft)
                                OPENREG_HALF_FFT(library, fft_rfft2) OPENREG_HALF_FFT(library, fft_rfftn)}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_half(library);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  register_half(library);
}

}  // namespace

}  // namespace openreg::ops
