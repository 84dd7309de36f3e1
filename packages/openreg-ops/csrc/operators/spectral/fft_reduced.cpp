// SPDX-License-Identifier: BSD-3-Clause
// Overrides for torch.fft of half and, since PyTorch 2.15, of bfloat16. PyTorch composes torch.fft of three operators
// (fft.cpp), but rejects 16-bit floats before it calls them on every device that is not its own. So the overrides
// compute these dtypes in float and round the result. They call PyTorch's composite for all other dtypes.
#include <ATen/ops/fft_fft2_native.h>
#include <ATen/ops/fft_fft_native.h>
#include <ATen/ops/fft_fftn_native.h>
#include <ATen/ops/fft_hfft2_native.h>
#include <ATen/ops/fft_hfft_native.h>
#include <ATen/ops/fft_hfftn_native.h>
#include <ATen/ops/fft_ifft2_native.h>
#include <ATen/ops/fft_ifft_native.h>
#include <ATen/ops/fft_ifftn_native.h>
#include <ATen/ops/fft_ihfft2_native.h>
#include <ATen/ops/fft_ihfft_native.h>
#include <ATen/ops/fft_ihfftn_native.h>
#include <ATen/ops/fft_irfft2_native.h>
#include <ATen/ops/fft_irfft_native.h>
#include <ATen/ops/fft_irfftn_native.h>
#include <ATen/ops/fft_rfft2_native.h>
#include <ATen/ops/fft_rfft_native.h>
#include <ATen/ops/fft_rfftn_native.h>

#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

bool is_computed_in_float(c10::ScalarType dtype) {
  return dtype == at::kHalf || (OPENREG_TORCH_HAS_BFLOAT16_FFT && dtype == at::kBFloat16);
}

// The overrides of one operator. kComposite is PyTorch's own function for it.
template <auto kComposite, class Composite = decltype(kComposite)>
struct ReducedFft;

template <auto kComposite, class... Options>
struct ReducedFft<kComposite, at::Tensor (*)(const at::Tensor&, Options...)> {
  static at::Tensor functional(const at::Tensor& self, Options... options) {
    if (!is_computed_in_float(self.scalar_type())) {
      return kComposite(self, options...);
    }
    const at::Tensor result = kComposite(self.to(at::kFloat), options...);
    return result.to(result.is_complex() ? c10::toComplexType(self.scalar_type()) : self.scalar_type());
  }

  template <auto kCompositeOut>
  static at::Tensor& out(const at::Tensor& self, Options... options, at::Tensor& out) {
    if (!is_computed_in_float(self.scalar_type())) {
      return kCompositeOut(self, options..., out);
    }
    constexpr const char* kName = "torch.fft";
    check_same_device(kName, device_of(kName, self, out), self, out);
    at::Tensor wide = out.to(reduced_as_float(out.scalar_type()));
    kCompositeOut(self.to(at::kFloat), options..., wide);  // warns if the size is wrong
    return out.resize_(wide.sizes()).copy_(wide);
  }
};

// Calls `add(name, function)` for the functional and the out= overload of an operator.
template <class Functional, class Out, auto kComposite, auto kCompositeOut, class Add>
void add_overloads(Add add) {
  using Override = ReducedFft<kComposite>;
  add(c10::OperatorName(Functional::name, Functional::overload_name), &Override::functional);
  add(c10::OperatorName(Out::name, Out::overload_name), &Override::template out<kCompositeOut>);
}

template <class Add>
void add_all(Add add) {
  add_overloads<op::fft_fft, op::fft_fft_out, at::native::fft_fft_symint, at::native::fft_fft_symint_out>(add);
  add_overloads<op::fft_fft2, op::fft_fft2_out, at::native::fft_fft2_symint, at::native::fft_fft2_symint_out>(add);
  add_overloads<op::fft_fftn, op::fft_fftn_out, at::native::fft_fftn_symint, at::native::fft_fftn_symint_out>(add);
  add_overloads<op::fft_hfft, op::fft_hfft_out, at::native::fft_hfft_symint, at::native::fft_hfft_symint_out>(add);
  add_overloads<op::fft_hfft2, op::fft_hfft2_out, at::native::fft_hfft2_symint, at::native::fft_hfft2_symint_out>(add);
  add_overloads<op::fft_hfftn, op::fft_hfftn_out, at::native::fft_hfftn_symint, at::native::fft_hfftn_symint_out>(add);
  add_overloads<op::fft_ifft, op::fft_ifft_out, at::native::fft_ifft_symint, at::native::fft_ifft_symint_out>(add);
  add_overloads<op::fft_ifft2, op::fft_ifft2_out, at::native::fft_ifft2_symint, at::native::fft_ifft2_symint_out>(add);
  add_overloads<op::fft_ifftn, op::fft_ifftn_out, at::native::fft_ifftn_symint, at::native::fft_ifftn_symint_out>(add);
  add_overloads<op::fft_ihfft, op::fft_ihfft_out, at::native::fft_ihfft_symint, at::native::fft_ihfft_symint_out>(add);
  add_overloads<op::fft_ihfft2, op::fft_ihfft2_out, at::native::fft_ihfft2_symint, at::native::fft_ihfft2_symint_out>(
      add);
  add_overloads<op::fft_ihfftn, op::fft_ihfftn_out, at::native::fft_ihfftn_symint, at::native::fft_ihfftn_symint_out>(
      add);
  add_overloads<op::fft_irfft, op::fft_irfft_out, at::native::fft_irfft_symint, at::native::fft_irfft_symint_out>(add);
  add_overloads<op::fft_irfft2, op::fft_irfft2_out, at::native::fft_irfft2_symint, at::native::fft_irfft2_symint_out>(
      add);
  add_overloads<op::fft_irfftn, op::fft_irfftn_out, at::native::fft_irfftn_symint, at::native::fft_irfftn_symint_out>(
      add);
  add_overloads<op::fft_rfft, op::fft_rfft_out, at::native::fft_rfft_symint, at::native::fft_rfft_symint_out>(add);
  add_overloads<op::fft_rfft2, op::fft_rfft2_out, at::native::fft_rfft2_symint, at::native::fft_rfft2_symint_out>(add);
  add_overloads<op::fft_rfftn, op::fft_rfftn_out, at::native::fft_rfftn_symint, at::native::fft_rfftn_symint_out>(add);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  add_all([&](const c10::OperatorName& overload, auto function) {
    register_overload(library, overload, {}, torch::CppFunction(function));
  });
}

// Registers the overrides above autograd, too, so that autograd records each operator within, as it does for the
// composite.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  add_all(
      [&](const c10::OperatorName& overload, auto function) { library.impl(toString(overload).c_str(), function); });
}

}  // namespace

}  // namespace openreg::ops
