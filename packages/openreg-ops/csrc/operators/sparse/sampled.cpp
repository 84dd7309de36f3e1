// SPDX-License-Identifier: BSD-3-Clause
// Products of compressed layouts whose sparse results have the elements of an operand: sampled_addmm, and the gradients
// of products that reduce.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "launch/derivative.h"
#include "operators/sparse/pattern.h"
#include "registration/declare.h"
#include "support/compute_dtype.h"
#include "support/index_range.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

constexpr c10::DispatchKeySet kOnCpu(kCompressed);

// sampled_addmm

constexpr Operator kSampled{op::sparse_sampled_addmm::name};

void check_sampled(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2) {
  TORCH_CHECK(self.layout() == c10::kSparseCsr, "sampled_addmm: Expected self to have sparse csr layout, but got ",
              self.layout());
  for (const at::Tensor* const each : {&mat1, &mat2}) {
    const char* name = each == &mat1 ? "mat1" : "mat2";
    TORCH_CHECK(each->layout() == c10::kStrided, "sampled_addmm: Expected ", name, " to have strided layout, but got ",
                each->layout());
    TORCH_CHECK(each->scalar_type() == self.scalar_type(), "sampled_addmm: Expected ", name,
                " and self to have the same dtype, but got ", each->scalar_type(), " and ", self.scalar_type());
    TORCH_CHECK(each->dim() >= 2, "sampled_addmm: Expected ", name, " to be a matrix, got ", each->dim(), "-D tensor");
  }
  TORCH_CHECK(self.dense_dim() == 0, "sampled_addmm: Expected non-hybrid self tensor");
  const c10::ScalarType dtype = self.scalar_type();
  const bool reduced = OPENREG_TORCH_HAS_REDUCED_SAMPLED_ADDMM && (dtype == at::kHalf || dtype == at::kBFloat16);
  TORCH_CHECK(reduced || dtype == at::kFloat || dtype == at::kDouble || dtype == at::kComplexFloat ||
                  dtype == at::kComplexDouble,
              "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got ", dtype);
  const auto batch = [](const at::Tensor& matrix) { return matrix.sizes().slice(0, matrix.dim() - 2); };
  TORCH_CHECK(batch(mat1) == batch(mat2), "sampled_addmm: Expected mat1 and mat2 to have the same batch size, but got ",
              batch(mat1), " and ", batch(mat2));
  TORCH_CHECK(batch(self) == batch(mat1), "sampled_addmm: Expected self and mat1 to have the same batch size, but got ",
              batch(self), " and ", batch(mat1));
  TORCH_CHECK(mat1.size(-1) == mat2.size(-2), "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (",
              mat1.size(-2), "x", mat1.size(-1), " and ", mat2.size(-2), "x", mat2.size(-1), ")");
  TORCH_CHECK(self.size(-2) == mat1.size(-2), "sampled_addmm: self.shape[-2] must match mat1.shape[-2]");
  TORCH_CHECK(self.size(-1) == mat2.size(-1), "sampled_addmm: self.shape[-1] must match mat2.shape[-1]");
}

// Launches the CPU's kernel for `out`, which has its indices already.
void launch_sampled(c10::Device device, const at::Tensor& out, const at::Tensor& self, const at::Tensor& mat1,
                    const at::Tensor& mat2, const at::Scalar& beta, const at::Scalar& alpha) {
  constexpr auto kKernel = computed_in<reduced_as_float, &ValuesKernel<op::sparse_sampled_addmm, kCompressed>::run>;
  launch(kSampled, device, kKernel, self, mat1, mat2, beta, alpha, sparse_components(out)[2]);
}

at::Tensor& sampled_addmm_out(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                              const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  const OperandDeviceGuard device(kSampled, self, mat1, mat2, out);
  check_sampled(self, mat1, mat2);
  TORCH_CHECK(out.layout() == c10::kSparseCsr, "sampled_addmm: Expected result to have sparse csr layout, but got ",
              out.layout());
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "sampled_addmm: Expected result and self to have the same dtype, but got ", out.scalar_type(), " and ",
              self.scalar_type());
  if (!out.is_same(self)) {
    const at::Tensor pattern = empty_of_pattern(self, self.scalar_type(), out.crow_indices().scalar_type());
    assign(out, SparseShape(pattern), sparse_components(pattern));
  }
  launch_sampled(device, out, self, mat1, mat2, beta, alpha);
  return out;
}

at::Tensor sampled_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
                         const at::Scalar& alpha) {
  const OperandDeviceGuard device(kSampled, self, mat1, mat2);
  check_sampled(self, mat1, mat2);
  at::Tensor out = empty_of_pattern(self, self.scalar_type(), at::kLong);
  launch_sampled(device, out, self, mat1, mat2, beta, alpha);
  return out;
}

// Products that reduce: sum, mean, largest and smallest element of a row's products

constexpr Operator kReduce{op::_sparse_mm_reduce_impl::name};
constexpr Operator kReduceBackward{op::_sparse_mm_reduce_impl_backward::name};

void check_reduce(const char* name, const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.layout() == c10::kSparseCsr, "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  TORCH_CHECK(self.dense_dim() == 0, "sparse_mm_reduce: expected non-hybrid self tensor.");
  TORCH_CHECK(self.dim() == 2, "sparse_mm_reduce: expected self to be a 2-D tensor, got ", self.dim(), "-D tensor.");
  TORCH_CHECK(other.layout() == c10::kStrided, name, ": expected 'other' to be strided, but got layout ",
              other.layout());
  TORCH_CHECK(other.scalar_type() == self.scalar_type(), name, ": expected 'other' to have dtype ", self.scalar_type(),
              ", but got ", other.scalar_type());
  TORCH_CHECK(other.dim() == 2 && other.size(0) == self.size(1), name, ": expected 'other' to be a matrix of ",
              self.size(1), " rows, but got size ", other.sizes());
}

bool is_extremum(std::string_view reduce) {
  TORCH_CHECK(reduce != "prod", "sparse_mm_reduce: reduce type of prod has not been enabled.");
  const bool picks = reduce == "amax" || reduce == "amin";
  TORCH_CHECK(picks || reduce == "sum" || reduce == "mean",
              "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  return picks;
}

// Sets the gradient mode of the caller, because the CPU's function reads it, and an engine thread does not have it.
void reduce_kernel(const at::Tensor& self, const at::Tensor& other, std::string_view reduce, bool trains,
                   at::Tensor& out, at::Tensor& places) {
  const at::AutoGradMode mode(trains);
  const at::Tensor operand = other.alias();
  operand.unsafeGetTensorImpl()->set_requires_grad(trains);
  const auto [computed, found] = op::_sparse_mm_reduce_impl::redispatch(kOnCpu, self, operand, reduce);
  put_result(kReduce.name, computed, out);
  put_result(kReduce.name, found, places);
}

std::tuple<at::Tensor, at::Tensor> mm_reduce(const at::Tensor& self, const at::Tensor& other, std::string_view reduce) {
  const OperandDeviceGuard device(kReduce, self, other);
  check_reduce("sparse_mm_reduce", self, other);
  const bool picks = is_extremum(reduce);
  const bool trains = picks && at::GradMode::is_enabled() && (self.requires_grad() || other.requires_grad());
  at::Tensor out = make_output({self.size(0), other.size(1)}, {}, other.options());
  const bool has_places = trains && self._nnz() > 0;
  const c10::DimVector size = has_places ? c10::DimVector(out.sizes()) : c10::DimVector{0};
  at::Tensor places = make_output(size, {}, self.col_indices().options());
  launch(kReduce, device, &reduce_kernel, self, other, reduce, trains, out, has_places ? places : at::Tensor());
  return {std::move(out), std::move(places)};
}

// `places` contains the position of each extremum among the values of `self`, or their number where a row has none.
void reduce_backward_kernel(const at::Tensor& self, const at::Tensor& grad, const at::Tensor& weight,
                            std::string_view reduce, const at::Tensor& places, std::array<bool, 2> wanted,
                            at::Tensor& of_values, at::Tensor& of_weight) {
  TORCH_CHECK(!places.defined() || are_within(places, 0, self._nnz() + 1), kReduceBackward.name,
              ": expected arg_out to have numbers from 0 to ", self._nnz(),
              ", the number of values; pass what the forward operator returned");
  const at::Tensor found = places.defined() ? places : at::empty({0}, self.col_indices().options());
  const auto [first, second] =
      op::_sparse_mm_reduce_impl_backward::redispatch(kOnCpu, self, grad, weight, reduce, found, wanted);
  if (of_values.defined()) {
    put_result(kReduceBackward.name, sparse_components(first)[2], of_values);
  }
  put_result(kReduceBackward.name, second, of_weight);
}

std::tuple<at::Tensor, at::Tensor> mm_reduce_backward(const at::Tensor& self, const at::Tensor& grad,
                                                      const at::Tensor& weight, std::string_view reduce,
                                                      const at::Tensor& places, std::array<bool, 2> wanted) {
  const OperandDeviceGuard device(kReduceBackward, self, grad, weight, places);
  check_reduce("sparse_mm_reduce_backward", self, weight);
  const bool picks = is_extremum(reduce) && self._nnz() > 0;
  TORCH_CHECK(grad.layout() == c10::kStrided && grad.scalar_type() == self.scalar_type() &&
                  grad.sizes() == c10::IntArrayRef({self.size(0), weight.size(1)}),
              "sparse_mm_reduce_backward: expected 'grad_out' to be a strided matrix of size ", self.size(0), "x",
              weight.size(1), " and dtype ", self.scalar_type());
  if (picks) {
    expect(kReduceBackward.name, "arg_out", places, grad.sizes(), self.col_indices().scalar_type());
  }
  const at::Tensor of_self = wanted[0] ? empty_of_pattern(self, self.scalar_type()) : at::Tensor();
  at::Tensor of_weight = output_if(wanted[1], weight.sizes(), weight.options());
  launch(kReduceBackward, device, &reduce_backward_kernel, self, grad, weight, reduce,
         picks && places.numel() > 0 ? places : at::Tensor(), wanted,
         of_self.defined() ? of_self.values() : at::Tensor(), of_weight);
  return {of_self, std::move(of_weight)};
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparseCsrPrivateUse1);
  function<op::_sparse_mm_reduce_impl>(library, mm_reduce);
  function<op::_sparse_mm_reduce_impl_backward>(library, mm_reduce_backward);
  function<op::sparse_sampled_addmm>(library, sampled_addmm);
  function<op::sparse_sampled_addmm_out>(library, sampled_addmm_out);
}

}  // namespace

}  // namespace openreg::ops
