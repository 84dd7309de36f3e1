// SPDX-License-Identifier: BSD-3-Clause
// Selection by a condition or by bounds, and tests of elements: where, clamp, isnan, isin, _assert_async.
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/isnan_native.h>
#include <ATen/ops/result_type.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

constexpr auto check_assert = [](const at::Tensor& self, const auto&... /*message*/) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
};

// Returns a new token, because torch.export makes the assertion a part of a program's data flow, so that it is neither
// removed nor moved.
at::Tensor functional_assert(const at::Tensor& self, std::string_view message, const at::Tensor& token) {
  at::_assert_async(self, message);
  return token.clone();
}

// Replaces PyTorch's meta function, which requests an empty output although the kernel returns one number. The other
// overloads are in operators/indexing/scatter_gather.cpp.
OutputSpec meta_isin(const at::Scalar& element, const at::Tensor& tests, bool /*assume_unique*/, bool /*invert*/) {
  for (const c10::ScalarType dtype : {element.type(), tests.scalar_type()}) {
    TORCH_CHECK(!c10::isComplexType(dtype) && dtype != at::kBool,
                "Unsupported input type encountered for isin(): ", dtype);
  }
  return scalar_output(at::kBool);
}

OutputSpec meta_where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other,
                      const at::Tensor& out) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  if (condition.scalar_type() == at::kByte) {
    TORCH_WARN_ONCE("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a ",
                    "future version of PyTorch. Use a boolean condition instead.");
  }
  const c10::ScalarType dtype = at::result_type(self, other);
  TORCH_CHECK(out.scalar_type() == dtype, "Expected out type to be ", dtype, " but got ", out.scalar_type());
  return by_iterator(condition, self, other, out);
}

// Passes a boolean condition on, because PyTorch's kernel warns of another one. Its warning would be lost on the engine
// thread, and count as given for later calls on the CPU.
at::Tensor& where_kernel(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other,
                         at::Tensor& out) {
  return cpu::where_outf(condition.to(at::kBool), self, other, out);
}
const auto kWhere = unstructured_overload<meta_where, op::where_self_out>(where_kernel, kChecked);

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const CurrentDeviceGuard current(device_of(kWhere.op.name, condition, self, other));
  at::Tensor out = make_output({0}, {}, self.options().dtype(at::result_type(self, other)));
  return kWhere(condition, self, other, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // A failed assertion becomes the device's sticky error, which the next synchronizing call throws.
  unstructured<check_assert, op::_assert_async>(library, cpu::_assert_async, kChecked);
  unstructured<check_assert, op::_assert_async_msg>(library, cpu::_assert_async, kChecked);
  function<op::_functional_assert_async_msg>(library, functional_assert);
  structured<meta::structured_clamp, op::clamp, op::clamp_>(library, cpu::clamp_outf, kRealNumbers);
  structured<meta::structured_clamp_Tensor, op::clamp_Tensor, op::clamp__Tensor>(library, cpu::clamp_outf,
                                                                                 {.refused = kBoolean | kComplex});
  structured<meta::structured_clamp_max, op::clamp_max, op::clamp_max_>(library, cpu::clamp_max_outf, kRealNumbers);
  structured<meta::structured_clamp_max_Tensor, op::clamp_max_Tensor, op::clamp_max__Tensor>(
      library, cpu::clamp_max_outf, kNoComplex);
  structured<meta::structured_clamp_min, op::clamp_min, op::clamp_min_>(library, cpu::clamp_min_outf, kRealNumbers);
  structured<meta::structured_clamp_min_Tensor, op::clamp_min_Tensor, op::clamp_min__Tensor>(
      library, cpu::clamp_min_outf, kNoComplex);
  unstructured<meta_isin, op::isin_Scalar_Tensor>(library,
                                                  as_out<static_cast<SchemaOf<op::isin_Scalar_Tensor>*>(cpu::isin)>);
  function<op::isnan>(library, at::native::isnan);
  function<op::where_self>(library, where);
  function<op::where_self_out>(library, [](auto... args) -> at::Tensor& { return kWhere(args...); }, kChecked);
}

}  // namespace

}  // namespace openreg::ops
