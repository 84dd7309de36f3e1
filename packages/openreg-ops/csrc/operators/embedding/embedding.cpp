// SPDX-License-Identifier: BSD-3-Clause
// The embedding and its gradient, with our own kernels. Sums, means and maxima of bags of embeddings, with backward.
#include <ATen/TensorUtils.h>
#include <ATen/ops/_embedding_bag_sparse_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/searchsorted.h>

#include "kernels/embedding.h"
#include "launch/derivative.h"
#include "launch/raw_operands.h"
#include "registration/declare.h"
#include "support/index_range.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

constexpr Operator kEmbedding{"aten::embedding"};
constexpr Operator kEmbeddingBackward{"aten::embedding_dense_backward"};

void check_embedding_indices(const char* name, const at::Tensor& indices) {
  at::checkScalarTypes(name, at::TensorArg(indices, "indices", 1), {at::kLong, at::kInt});
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices, int64_t /*padding_idx*/,
                     bool /*scale_grad_by_freq*/, bool /*sparse*/) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_embedding_indices("embedding", indices);
  const OperandDeviceGuard device(kEmbedding, weight, indices);
  const at::Tensor places = indices.contiguous();
  c10::DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  at::Tensor output = make_output(sizes, {}, weight.options());
  launch_raw(kEmbedding.name, device, &raw::embedding,
             raw::EmbeddingArguments{kernel_address(weight),
                                     {weight.stride(0), weight.stride(1)},
                                     kernel_address(places),
                                     places.scalar_type(),
                                     mutable_kernel_address(output),
                                     weight.element_size(),
                                     places.numel(),
                                     weight.size(0),
                                     weight.size(1)},
             reads(weight, places), writes(output));
  return output;
}

at::Tensor embedding_dense_backward(const at::Tensor& grad_output, const at::Tensor& indices, int64_t num_weights,
                                    int64_t padding_idx, bool scale_grad_by_freq) {
  check_embedding_indices("embedding_backward", indices);
  const OperandDeviceGuard device(kEmbeddingBackward, grad_output, indices);
  TORCH_CHECK_NOT_IMPLEMENTED(raw::contains(raw::Floats(), grad_output.scalar_type()),
                              "\"embedding_backward\" not implemented for '", grad_output.scalar_type(), "'");
  const int64_t width = grad_output.size(-1);
  const at::Tensor places = indices.contiguous();
  const at::Tensor gradient = grad_output.contiguous();
  TORCH_CHECK(gradient.numel() == places.numel() * width, kEmbeddingBackward.name,
              ": expected a gradient with a row for each index, and indices of shape ", indices.sizes(),
              ", but got a gradient of shape ", grad_output.sizes());
  at::Tensor result = make_output({num_weights, width}, {}, grad_output.options());
  launch_raw(kEmbeddingBackward.name, device, &raw::embedding_backward,
             raw::EmbeddingBackwardArguments{gradient.scalar_type(), kernel_address(gradient), kernel_address(places),
                                             places.scalar_type(), mutable_kernel_address(result), places.numel(),
                                             num_weights, width, padding_idx, scale_grad_by_freq},
             reads(gradient, places), writes(result));
  return result;
}

void check_renorm(const at::Tensor& self, const at::Tensor& indices, double /*max_norm*/, double /*norm_type*/) {
  TORCH_CHECK(self.dim() == 2, "embedding_renorm_: expected a matrix of weights, but got ", self.sizes());
  check_embedding_indices("embedding_renorm_", indices);
  OPENREG_CHECK_IMPLEMENTED_SINCE_15(
      self.is_floating_point() || self.is_complex(),
      "embedding_renorm_: the norm of a row needs floating-point or complex numbers, but got ", self.scalar_type());
}

bool is_index_vector(const at::Tensor& tensor) {
  return tensor.dim() == 1 && (tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt);
}

constexpr int64_t kSumMode = 0;
constexpr int64_t kMax = 2;

// Returns the specifications of the output, of the bag of each index, of the sizes of bags, and of the index of each
// maximum. The shapes are those of a GPU, because PyTorch's fake tensors assume them for every device except the CPU.
std::array<OutputSpec, 4> meta_bags(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                                    bool /*scale_grad_by_freq*/, int64_t mode, bool /*sparse*/,
                                    MaybeTensor sample_weights, bool include_last_offset, int64_t /*padding_idx*/) {
  TORCH_CHECK(is_index_vector(indices), "embedding_bag: expected indices to be a vector of int32 or int64, but got ",
              indices.sizes(), " of ", indices.scalar_type());
  TORCH_CHECK(is_index_vector(offsets), "embedding_bag: expected offsets to be a vector of int32 or int64, but got ",
              offsets.sizes(), " of ", offsets.scalar_type());
  TORCH_CHECK(weight.dim() == 2 && at::isFloatingType(weight.scalar_type()),
              "embedding_bag: expected a matrix of floating-point weights, but got ", weight.sizes(), " of ",
              weight.scalar_type());
  TORCH_CHECK(!include_last_offset || offsets.size(0) >= 1,
              "include_last_offset: number of offset should be at least 1");
  if (is_given(sample_weights)) {
    TORCH_CHECK(mode == kSumMode, "embedding_bag: per_sample_weights only supported with mode='sum'");
    TORCH_CHECK(sample_weights->scalar_type() == weight.scalar_type() && sample_weights->dim() == 1 &&
                    sample_weights->numel() == indices.numel(),
                "embedding_bag: expected one sample weight of ", weight.scalar_type(), " for each of ", indices.numel(),
                " indices, but got ", sample_weights->sizes(), " of ", sample_weights->scalar_type());
  }
  const c10::ScalarType place = c10::promoteTypes(indices.scalar_type(), offsets.scalar_type());
  const c10::DimVector sizes{offsets.size(0) - (include_last_offset ? 1 : 0), weight.size(1)};
  return {output_of(sizes, weight.scalar_type()), output_of({indices.numel()}, place),
          output_of({offsets.size(0)}, place), output_of(mode == kMax ? sizes : c10::DimVector{0}, place)};
}

template <auto* kKernel>
OutResultOf<4> bags_kernel(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                           bool scale_grad_by_freq, int64_t mode, bool /*sparse*/, MaybeTensor sample_weights,
                           bool include_last_offset, int64_t padding_idx, at::Tensor& output, at::Tensor& offset2bag,
                           at::Tensor& bag_size, at::Tensor& max_indices) {
  const auto [computed, bags, sizes, maxima] =
      kKernel(weight, indices, offsets, scale_grad_by_freq, mode,
              /*sparse=*/false, sample_weights, include_last_offset, padding_idx);
  output.copy_(computed);
  // The CPU's function leaves a result empty if it does not need it itself.
  if (bags.numel() == indices.numel()) {
    offset2bag.copy_(bags);
  } else {
    const at::Tensor places = at::arange(indices.numel(), offset2bag.options());
    offset2bag.copy_(at::searchsorted(offsets.to(places.scalar_type()), places, /*out_int32=*/false, /*right=*/true));
    offset2bag.sub_(1);
  }
  const int64_t known = std::min(sizes.numel(), output.size(0));
  bag_size.zero_();
  bag_size.narrow(0, 0, known).copy_(sizes.narrow(0, 0, known));
  if (max_indices.numel() > 0) {
    max_indices.copy_(maxima);
  }
  return {output, offset2bag, bag_size, max_indices};
}

const auto kBags = unstructured_operator<meta_bags, op::_embedding_bag>(bags_kernel<cpu::_embedding_bag>);
const auto kBagsForward =
    unstructured_operator<meta_bags, op::_embedding_bag_forward_only>(bags_kernel<cpu::_embedding_bag_forward_only>);

// Throws c10::Error unless the gradient has a row for each bag. There are `bags` of them, or one fewer if the last
// offset was included, which the operands do not show. The kernel checks that every bag in `offset2bag` has a row
// (check_rows_on_engine()).
void check_bags(const char* name, const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag,
                int64_t bags) {
  TORCH_CHECK(grad.dim() == 2 && (grad.size(0) == bags || grad.size(0) == bags - 1) &&
                  (dtype_bit(grad.scalar_type()) & kFloating) != 0,
              name, " on ", grad.device(), ": grad has the shape ", grad.sizes(), " and the type ", grad.scalar_type(),
              ", but has to be a matrix of floating-point numbers with a row for each of ", bags,
              " bags; pass the gradient of what the forward operator gives");
  TORCH_CHECK(is_index_vector(indices) && is_index_vector(offset2bag) && offset2bag.numel() == indices.numel(), name,
              " on ", grad.device(),
              ": indices and offset2bag have to be vectors of int32 or int64 of one length, but have the shapes ",
              indices.sizes(), " and ", offset2bag.sizes(), " and the types ", indices.scalar_type(), " and ",
              offset2bag.scalar_type());
}

// Throws c10::Error, with `name`, unless the gradient has a row for every bag in `offset2bag`. Runs on the engine
// thread.
void check_rows_on_engine(const char* name, const at::Tensor& grad, const at::Tensor& offset2bag) {
  TORCH_CHECK(are_within(offset2bag, 0, grad.size(0)), name,
              ": expected offset2bag to have numbers of at least 0 and below ", grad.size(0),
              ", the rows of the gradient; pass what the forward operator returned");
}

// Throws c10::Error, with `name`, unless all indices are rows of a matrix that has `rows`, because the kernels do not
// check the positions to which they write. Runs on the engine thread.
void check_indices_on_engine(const char* name, const at::Tensor& indices, int64_t rows) {
  TORCH_CHECK(are_within(indices, 0, rows), name, ": expected indices of at least 0 and below ", rows,
              ", the rows of the weight; pass those of the forward operator");
}

OutputSpec meta_dense_backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag,
                               const at::Tensor& bag_size, const at::Tensor& max_indices, int64_t num_weights,
                               bool /*scale_grad_by_freq*/, int64_t mode, MaybeTensor sample_weights,
                               int64_t /*padding_idx*/) {
  constexpr const char* kName = op::_embedding_bag_dense_backward::name;
  check_bags(kName, grad, indices, offset2bag, bag_size.numel());
  expect(kName, "bag_size", bag_size, {bag_size.numel()}, offset2bag.scalar_type());
  if (mode == kMax) {
    expect(kName, "maximum_indices", max_indices, grad.sizes(), offset2bag.scalar_type());
  }
  expect(kName, "per_sample_weights", sample_weights, indices.sizes(), grad.scalar_type());
  return output_of({num_weights, grad.size(1)}, grad.scalar_type());
}

at::Tensor dense_backward_kernel(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag,
                                 const at::Tensor& bag_size, const at::Tensor& max_indices, int64_t num_weights,
                                 bool scale_grad_by_freq, int64_t mode, MaybeTensor sample_weights,
                                 int64_t padding_idx) {
  check_rows_on_engine(op::_embedding_bag_dense_backward::name, grad, offset2bag);
  check_indices_on_engine(op::_embedding_bag_dense_backward::name, indices, num_weights);
  return cpu::_embedding_bag_dense_backward(grad.contiguous(), indices.to(offset2bag.scalar_type()), offset2bag,
                                            bag_size, max_indices, num_weights, scale_grad_by_freq, mode,
                                            sample_weights, padding_idx);
}

const auto kDenseBackward =
    unstructured_operator<meta_dense_backward, op::_embedding_bag_dense_backward>(dense_backward_kernel);

at::Tensor embedding_bag_backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offsets,
                                  const at::Tensor& offset2bag, const at::Tensor& bag_size,
                                  const at::Tensor& max_indices, int64_t num_weights, bool scale_grad_by_freq,
                                  int64_t mode, bool sparse, MaybeTensor sample_weights, int64_t padding_idx) {
  TORCH_CHECK(is_index_vector(offsets),
              "aten::_embedding_bag_backward: expected offsets to be a vector of int32 or "
              "int64, but got ",
              offsets.sizes(), " of ", offsets.scalar_type());
  if (sparse) {
    return at::_embedding_bag_sparse_backward(grad, indices, offsets, offset2bag, bag_size, num_weights,
                                              scale_grad_by_freq, mode, sample_weights, padding_idx);
  }
  return kDenseBackward.functional(grad, indices, offset2bag, bag_size, max_indices, num_weights, scale_grad_by_freq,
                                   mode, sample_weights, padding_idx);
}

OutputSpec meta_sample_weights_backward(const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices,
                                        const at::Tensor& offsets, const at::Tensor& offset2bag, int64_t mode,
                                        int64_t /*padding_idx*/) {
  constexpr const char* kName = op::_embedding_bag_per_sample_weights_backward::name;
  TORCH_CHECK(mode == kSumMode, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(is_index_vector(offsets), kName, ": expected offsets to be a vector of int32 or int64, but got ",
              offsets.sizes(), " of ", offsets.scalar_type());
  check_bags(kName, grad, indices, offset2bag, offsets.numel());
  expect_dim(kName, "weight", weight, 2);
  expect(kName, "grad", grad, {grad.size(0), weight.size(1)}, weight.scalar_type());
  return output_of({indices.numel()}, grad.scalar_type());
}

at::Tensor sample_weights_backward(const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices,
                                   const at::Tensor& offsets, const at::Tensor& offset2bag, int64_t mode,
                                   int64_t padding_idx) {
  check_rows_on_engine(op::_embedding_bag_per_sample_weights_backward::name, grad, offset2bag);
  check_indices_on_engine(op::_embedding_bag_per_sample_weights_backward::name, indices, weight.size(0));
  const at::ScalarType type = offset2bag.scalar_type();
  return cpu::_embedding_bag_per_sample_weights_backward(grad, weight, indices.to(type), offsets.to(type), offset2bag,
                                                         mode, padding_idx);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_embedding_bag>(library, [](auto... args) { return kBags.functional(args...); });
  function<op::_embedding_bag_forward_only>(library, [](auto... args) { return kBagsForward.functional(args...); });
  function<op::_embedding_bag_backward>(library, embedding_bag_backward);
  function<op::_embedding_bag_dense_backward>(library, [](auto... args) { return kDenseBackward.functional(args...); });
  unstructured<meta_sample_weights_backward, op::_embedding_bag_per_sample_weights_backward>(library,
                                                                                             sample_weights_backward);
  function<op::embedding>(library, embedding);
  function<op::embedding_dense_backward>(library, embedding_dense_backward);
  unstructured<check_renorm, op::embedding_renorm_>(library, cpu::embedding_renorm_);
}

}  // namespace

}  // namespace openreg::ops
