// SPDX-License-Identifier: BSD-3-Clause
// Products of dense matrices of integers or 8-bit floats, and operators that pack such weights. Compiled models with
// quantized weights and torchao call them.
#include "registration/cached_meta.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

bool is_taken(const at::Tensor& self) {
  return self.scalar_type() == at::kFloat || at::isReducedFloatingType(self.scalar_type());
}

OutputSpec meta_int_mm(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() == 2, "_int_mm: Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK(other.dim() == 2, "_int_mm: Expected mat2 to be of dimension 2 but got ", other.dim());
  TORCH_CHECK(self.size(1) == other.size(0), "_int_mm: self.size(1) needs to match mat2.size(0) but got ", self.size(1),
              " and ", other.size(0));
  TORCH_CHECK(self.scalar_type() == at::kChar || self.scalar_type() == at::kByte,
              "_int_mm: Expected self dtype to be int8 or uint8 but got ", self.scalar_type());
  TORCH_CHECK(other.scalar_type() == at::kChar, "_int_mm: Expected mat2 dtype to be of type int8 but got ",
              other.scalar_type());
  return output_of({self.size(0), other.size(1)}, at::kInt);
}

const auto kIntMm = unstructured_operator<meta_int_mm, op::_int_mm>(cpu::_int_mm_outf);

// Throws c10::Error unless the output has the right size, because PyTorch does not resize it, unlike outputs of other
// operators.
at::Tensor& int_mm_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const OutputSpec spec = meta_int_mm(self, other);
  TORCH_CHECK(out.scalar_type() == at::kInt, "_int_mm: Expected result dtype to be of type kInt but got ",
              out.scalar_type());
  TORCH_CHECK(out.sizes() == spec.sizes, "_int_mm: Expected result to be of size ", c10::IntArrayRef(spec.sizes),
              " but got ", out.sizes());
  TORCH_CHECK(out.is_contiguous(), "_int_mm: Expected result to be contiguous.");
  return kIntMm.out(self, other, out);
}

OutputSpec meta_int8pack_mm(const at::Tensor& self, const at::Tensor& other, const at::Tensor& scales) {
  constexpr const char* kName = "_weight_int8pack_mm";
  TORCH_CHECK(self.dim() == 2, kName, ": expect A to be 2D tensor.");
  TORCH_CHECK(is_taken(self), kName, ": expect A to be either 32-bit or 16-bit float tensor.");
  TORCH_CHECK(self.numel() == 0 || self.stride(-1) == 1, kName, ": A must be contiguous on the last dimension.");
  TORCH_CHECK(other.dim() == 2 && other.scalar_type() == at::kChar, kName, ": expect B to be int8 tensor.");
  TORCH_CHECK(other.is_contiguous(), kName, ": expect B to be contiguous.");
  TORCH_CHECK(other.size(1) == self.size(1), kName, ": expect B.size(1) == ", self.size(1));
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == other.size(0), kName, ": expect scales to be 1d tensor with size ",
              other.size(0));
  TORCH_CHECK(scales.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
              scales.scalar_type());
  return output_of({self.size(0), other.size(0)}, self.scalar_type());
}

OutputSpec meta_int4pack(const at::Tensor& self, int64_t /*tiles*/) {
  constexpr const char* kName = "_convert_weight_to_int4pack_for_cpu";
  TORCH_CHECK(self.dim() == 2, kName, ": expect weight to be 2D tensor.");
  TORCH_CHECK(self.scalar_type() == at::kInt, kName, ": expect weight to be kInt.");
  TORCH_CHECK(self.size(0) % 16 == 0, kName, ": expect N to be dividable by 16");
  TORCH_CHECK(self.size(1) % 2 == 0, kName, ": expect K to be dividable by 2");
  return output_of({self.size(0), self.size(1) / 2}, at::kByte);
}

OutputSpec meta_int4pack_mm(const at::Tensor& self, const at::Tensor& packed, int64_t group,
                            const at::Tensor& scales_and_zeros) {
  constexpr const char* kName = "_weight_int4pack_mm_for_cpu";
  TORCH_CHECK(self.dim() == 2, kName, ": expect A to be 2D tensor.");
  TORCH_CHECK(is_taken(self), kName, ": expect A to be either 32-bit or 16-bit float tensor.");
  TORCH_CHECK(self.is_contiguous(), kName, ": expect A to be contiguous.");
  TORCH_CHECK(packed.dim() == 2 && packed.scalar_type() == at::kByte, kName, ": expect B to be uint8 tensor.");
  TORCH_CHECK(packed.is_contiguous(), kName, ": expect B to be contiguous.");
  TORCH_CHECK(packed.size(1) == self.size(1) / 2, kName, ": expect B.size(1) to be K/2, got ", packed.size(1));
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256, kName,
              ": expect qGroupSize to be 32, 64, 128 or 256, got ", group);
  TORCH_CHECK(self.size(1) % group == 0, kName, ": expect K to be divisible by qGroupSize, got K:", self.size(1),
              ", qGroupSize:", group);
  // The CPU's kernel does not check the number of groups, and would read beyond the end.
  TORCH_CHECK(scales_and_zeros.dim() == 3 && scales_and_zeros.size(0) == self.size(1) / group &&
                  scales_and_zeros.size(1) == packed.size(0) && scales_and_zeros.size(2) == 2,
              kName, ": expect qScaleAndZeros to be 3d tensor with sizes [", self.size(1) / group, ", ", packed.size(0),
              ", 2]");
  TORCH_CHECK(scales_and_zeros.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(),
              " but found ", scales_and_zeros.scalar_type());
  return output_of({self.size(0), packed.size(0)}, self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_int_mm>(library, [](auto... args) { return kIntMm.functional(args...); });
  function<op::_int_mm_out>(library, int_mm_out);
  unstructured<meta_int8pack_mm, op::_weight_int8pack_mm>(library, cpu::_weight_int8pack_mm);
  unstructured<meta_int4pack, op::_convert_weight_to_int4pack_for_cpu>(library,
                                                                       cpu::_convert_weight_to_int4pack_for_cpu);
  unstructured<meta_int4pack_mm, op::_weight_int4pack_mm_for_cpu>(library, cpu::_weight_int4pack_mm_for_cpu);
  cached_meta(library, {"_dyn_quant_matmul_4bit", "_dyn_quant_pack_4bit_weight", "_scaled_mm", "_scaled_mm.out",
                        "_scaled_mm_v2", "_scaled_mm_v2.out"});
}

}  // namespace

}  // namespace openreg::ops
