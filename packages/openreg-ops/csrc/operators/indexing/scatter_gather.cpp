// SPDX-License-Identifier: BSD-3-Clause
// Operators that move elements to and from the positions in an index tensor: gather, scatter, take and put. isin looks
// elements up.
#include <ATen/Context.h>
#include <ATen/core/List.h>

#include "launch/deterministic.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

OutputSpec meta_take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  return output_of(index.sizes(), self.scalar_type());
}

void check_put(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  check_same_device("aten::put_", self.device(), index, source);
  if (!accumulate) {
    at::globalContext().alertNotDeterministic("put_");
  }
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(source.numel() == index.numel(),
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
}

// Implements put_ by index_put_, because at::cpu::put_ reads the flag of torch.use_deterministic_algorithms() when it
// runs. On a device the flag's value at the launch counts, which has selected this kernel's variant.
at::Tensor& put_kernel(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  if (index.numel() != 0) {
    at::Tensor elements = self.reshape({-1});
    const c10::List<std::optional<at::Tensor>> places({index.reshape({-1})});
    at::cpu::_index_put_impl_(elements, places, source.reshape({-1}), accumulate, /*unsafe=*/false);
    if (!elements.is_alias_of(self)) {
      self.copy_(elements.view(self.sizes()));
    }
  }
  return self;
}

// Launches the kernel that the current deterministic mode selects. If several elements have one destination, the
// deterministic kernel keeps the last one.
at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  const auto put = unstructured_overload<check_put, op::put_>(deterministic_kernel<SchemaOf<op::put_>, put_kernel>());
  return put(self, index, source, accumulate);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_gather, op::gather>(library, cpu::gather_outf, kChecked);
  // isin.Scalar_Tensor is in operators/tensor_compare/tensor_compare.cpp, because PyTorch's meta function requests an
  // empty output for it, but the kernel returns one number.
  structured<meta::structured_isin_Tensor_Scalar, op::isin_Tensor_Scalar>(library, cpu::isin_outf,
                                                                          {.overlap = kNotItself});
  structured<meta::structured_isin_Tensor_Tensor, op::isin_Tensor_Tensor>(library, cpu::isin_outf,
                                                                          {.overlap = kNotItself});
  function<op::put_>(library, put_);
  structured<meta::structured_scatter_add, op::scatter_add, op::scatter_add_>(
      library, cpu::scatter_add_outf, checked(KernelTraits{.overlap = kNoPart}));
  structured<meta::structured_scatter_reduce, op::scatter_reduce, op::scatter__reduce>(library, cpu::scatter_outf,
                                                                                       {.overlap = kNoPart});
  structured<meta::structured_scatter_reduce_two, op::scatter_reduce_two, op::scatter_reduce__two>(
      library, cpu::scatter_reduce_outf,
      {.overlap = kNoPart, .modes = {{{"amax", kComplex}, {"amin", kComplex}, {"mean", kBoolean}}}});
  structured<meta::structured_scatter_src, op::scatter_src, op::scatter__src>(
      library, cpu::scatter_outf, checked(KernelTraits{.overlap = kNoPart}));
  structured<meta::structured_scatter_value, op::scatter_value, op::scatter__value>(
      library, cpu::scatter_outf, checked(KernelTraits{.overlap = kNoPart}));
  structured<meta::structured_scatter_value_reduce, op::scatter_value_reduce, op::scatter__value_reduce>(
      library, cpu::scatter_outf, {.overlap = kNoPart});
  unstructured<meta_take, op::take>(library, cpu::take_outf);
}

}  // namespace

}  // namespace openreg::ops
