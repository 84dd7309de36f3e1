// SPDX-License-Identifier: BSD-3-Clause
// Sums, means and maxima of bags of embeddings, with backward. Shapes are those of a GPU, which PyTorch's fake tensors
// expect of every device but the CPU.
#include <ATen/ops/_embedding_bag_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_dense_backward_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_forward_only_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_per_sample_weights_backward_cpu_dispatch.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/searchsorted.h>
#include <torch/library.h>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

constexpr int64_t kSum = 0;
constexpr int64_t kMax = 2;

struct BagOptions {
  bool scale_grad_by_freq;
  int64_t mode;
  bool include_last_offset;
  int64_t padding_idx;
};

void check_operands(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                    MaybeTensor sample_weights, const BagOptions& options) {
  const auto is_index = [](const at::Tensor& tensor) {
    return tensor.dim() == 1 && (tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt);
  };
  TORCH_CHECK(is_index(indices), "embedding_bag: expected indices to be a vector of int32 or int64, but got ",
              indices.sizes(), " of ", indices.scalar_type());
  TORCH_CHECK(is_index(offsets), "embedding_bag: expected offsets to be a vector of int32 or int64, but got ",
              offsets.sizes(), " of ", offsets.scalar_type());
  TORCH_CHECK(weight.dim() == 2 && at::isFloatingType(weight.scalar_type()),
              "embedding_bag: expected a matrix of floating-point weights, but got ", weight.sizes(), " of ",
              weight.scalar_type());
  TORCH_CHECK(!options.include_last_offset || offsets.size(0) >= 1,
              "include_last_offset: number of offset should be at least 1");
  if (is_given(sample_weights)) {
    TORCH_CHECK(options.mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
    TORCH_CHECK(sample_weights->scalar_type() == weight.scalar_type() && sample_weights->dim() == 1 &&
                    sample_weights->numel() == indices.numel(),
                "embedding_bag: expected one sample weight of ", weight.scalar_type(), " for each of ", indices.numel(),
                " indices, but got ", sample_weights->sizes(), " of ", sample_weights->scalar_type());
  }
}

void forward_kernel(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                    MaybeTensor sample_weights, BagOptions options, bool forward_only, at::Tensor& output,
                    at::Tensor& offset2bag, at::Tensor& bag_size, at::Tensor& max_indices) {
  const auto kernel = forward_only ? &at::cpu::_embedding_bag_forward_only : &at::cpu::_embedding_bag;
  const auto [computed, bags, sizes, maxima] =
      kernel(weight, indices, offsets, options.scale_grad_by_freq, options.mode, /*sparse=*/false, sample_weights,
             options.include_last_offset, options.padding_idx);
  output.copy_(computed);
  // Where the CPU needs none of these itself, it leaves them empty.
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
}

Tensors launch_forward(const char* name, bool forward_only, const at::Tensor& weight, const at::Tensor& indices,
                       const at::Tensor& offsets, MaybeTensor sample_weights, const BagOptions& options) {
  const c10::Device device = device_of(name, weight, indices, offsets);
  check_same_device(name, device, weight, indices, offsets, sample_weights);
  check_operands(weight, indices, offsets, sample_weights, options);
  const CurrentDevice current(device);
  const int64_t bags = offsets.size(0) - (options.include_last_offset ? 1 : 0);
  const auto plain = weight.options().memory_format(std::nullopt);
  const auto places = plain.dtype(c10::promoteTypes(indices.scalar_type(), offsets.scalar_type()));
  at::Tensor output = make_output({bags, weight.size(1)}, {}, plain);
  at::Tensor offset2bag = make_output({indices.numel()}, {}, places);
  at::Tensor bag_size = make_output({offsets.size(0)}, {}, places);
  at::Tensor max_indices =
      options.mode == kMax ? make_output({bags, weight.size(1)}, {}, places) : make_output({0}, {}, places);
  launch_function(name, device, &forward_kernel, weight, indices, offsets, sample_weights, options, forward_only,
                  output, offset2bag, bag_size, max_indices);
  return {std::move(output), std::move(offset2bag), std::move(bag_size), std::move(max_indices)};
}

Tensors embedding_bag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                      bool scale_grad_by_freq, int64_t mode, bool /*sparse*/, MaybeTensor sample_weights,
                      bool include_last_offset, int64_t padding_idx) {
  return launch_forward("aten::_embedding_bag", false, weight, indices, offsets, sample_weights,
                        {scale_grad_by_freq, mode, include_last_offset, padding_idx});
}

Tensors embedding_bag_forward_only(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                                   bool scale_grad_by_freq, int64_t mode, bool /*sparse*/, MaybeTensor sample_weights,
                                   bool include_last_offset, int64_t padding_idx) {
  return launch_forward("aten::_embedding_bag_forward_only", true, weight, indices, offsets, sample_weights,
                        {scale_grad_by_freq, mode, include_last_offset, padding_idx});
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag,
                     const at::Tensor& bag_size, const at::Tensor& max_indices, bool scale_grad_by_freq, int64_t mode,
                     MaybeTensor sample_weights, int64_t padding_idx, at::Tensor& result) {
  result.copy_(at::cpu::_embedding_bag_dense_backward(grad.contiguous(), indices.to(offset2bag.scalar_type()),
                                                      offset2bag, bag_size, max_indices, result.size(0),
                                                      scale_grad_by_freq, mode, sample_weights, padding_idx));
}

at::Tensor embedding_bag_dense_backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag,
                                        const at::Tensor& bag_size, const at::Tensor& max_indices, int64_t num_weights,
                                        bool scale_grad_by_freq, int64_t mode, MaybeTensor sample_weights,
                                        int64_t padding_idx) {
  constexpr const char* kName = "aten::_embedding_bag_dense_backward";
  const c10::Device device = device_of(kName, grad, indices);
  check_same_device(kName, device, grad, indices, offset2bag, bag_size, max_indices, sample_weights);
  const CurrentDevice current(device);
  at::Tensor result = make_output({num_weights, grad.size(1)}, {}, grad.options().memory_format(std::nullopt));
  launch_function(kName, device, &backward_kernel, grad, indices, offset2bag, bag_size, max_indices, scale_grad_by_freq,
                  mode, sample_weights, padding_idx, result);
  return result;
}

at::Tensor embedding_bag_backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& /*offsets*/,
                                  const at::Tensor& offset2bag, const at::Tensor& bag_size,
                                  const at::Tensor& max_indices, int64_t num_weights, bool scale_grad_by_freq,
                                  int64_t mode, bool sparse, MaybeTensor sample_weights, int64_t padding_idx) {
  TORCH_CHECK_NOT_IMPLEMENTED(!sparse,
                              "embedding_bag: the openreg device stores only strided tensors, so gradients "
                              "cannot be sparse; pass sparse=False");
  return embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, max_indices, num_weights, scale_grad_by_freq,
                                      mode, sample_weights, padding_idx);
}

void sample_weights_kernel(const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices,
                           const at::Tensor& offsets, const at::Tensor& offset2bag, int64_t mode, int64_t padding_idx,
                           at::Tensor& result) {
  const at::ScalarType type = offset2bag.scalar_type();
  result.copy_(at::cpu::_embedding_bag_per_sample_weights_backward(grad, weight, indices.to(type), offsets.to(type),
                                                                   offset2bag, mode, padding_idx));
}

at::Tensor sample_weights_backward(const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices,
                                   const at::Tensor& offsets, const at::Tensor& offset2bag, int64_t mode,
                                   int64_t padding_idx) {
  constexpr const char* kName = "aten::_embedding_bag_per_sample_weights_backward";
  const c10::Device device = device_of(kName, grad, weight);
  check_same_device(kName, device, grad, weight, indices, offsets, offset2bag);
  TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  const CurrentDevice current(device);
  at::Tensor result = make_output({indices.numel()}, {}, grad.options().memory_format(std::nullopt));
  launch_function(kName, device, &sample_weights_kernel, grad, weight, indices, offsets, offset2bag, mode, padding_idx,
                  result);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_embedding_bag", TORCH_FN(embedding_bag));
  library.impl("_embedding_bag_forward_only", TORCH_FN(embedding_bag_forward_only));
  library.impl("_embedding_bag_backward", TORCH_FN(embedding_bag_backward));
  library.impl("_embedding_bag_dense_backward", TORCH_FN(embedding_bag_dense_backward));
  library.impl("_embedding_bag_per_sample_weights_backward", TORCH_FN(sample_weights_backward));
}

}  // namespace

}  // namespace openreg::ops
