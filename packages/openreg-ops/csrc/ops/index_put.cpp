// SPDX-License-Identifier: BSD-3-Clause
// x[indices] = values. One value fits whatever a mask chooses, so that nothing waits for the mask; whether several fit
// shows when the kernel counts it.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_index_put_impl_cpu_dispatch.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <torch/library.h>

#include "common/described.h"
#include "common/indices.h"
#include "common/overlap.h"
#include "common/repeatable.h"

namespace openreg::ops {

namespace {

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// What the host can know of x[indices]: its shape, unless a mask's count stands in it.
struct IndexedShape {
  c10::DimVector sizes;
  bool is_known = true;
  bool has_byte_mask = false;  // which some kernels refuse, on every device
};

void check_mask(const at::Tensor& self, const at::Tensor& mask, int64_t first) {
  for (int64_t i = 0; i < mask.dim(); ++i) {
    TORCH_CHECK_INDEX(first + i < self.dim(), "too many indices for tensor of dimension ", self.dim());
    TORCH_CHECK_INDEX(mask.size(i) == self.size(first + i), "The shape of the mask ", mask.sizes(), " at index ", i,
                      " does not match the shape of the indexed tensor ", self.sizes(), " at index ", first + i);
  }
}

// Checks the indices in PyTorch's words.
IndexedShape indexed_shape(const at::Tensor& self, const Indices& indices) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices.size(), ")");
  IndexedShape shape;
  c10::DimVector broadcast;
  std::vector<c10::IntArrayRef> shapes;
  c10::SmallVector<bool, 6> is_indexed(static_cast<size_t>(self.dim()), false);
  int64_t dim = 0;
  for (const std::optional<at::Tensor> index : indices) {
    if (!index.has_value() || !index->defined()) {
      ++dim;
      continue;
    }
    const bool is_integer = index->scalar_type() == at::kLong || index->scalar_type() == at::kInt;
    TORCH_CHECK_INDEX(is_integer || is_mask(*index), "tensors used as indices must be long, int, byte or bool tensors");
    if (is_mask(*index)) {
      check_mask(self, *index, dim);
      shape.is_known = false;
      shape.has_byte_mask |= index->scalar_type() == at::kByte;
      dim += index->dim();
      continue;
    }
    TORCH_CHECK_INDEX(dim < self.dim(), "too many indices for tensor of dimension ", self.dim());
    is_indexed[static_cast<size_t>(dim++)] = true;
    shapes.push_back(index->unsafeGetTensorImpl()->sizes());
  }
  try {
    for (const c10::IntArrayRef each : shapes) {
      broadcast = at::infer_size_dimvector(broadcast, each);
    }
  } catch (const c10::Error&) {
    std::ostringstream list;
    for (size_t i = 0; i < shapes.size(); ++i) {
      list << (i > 0 ? ", " : "") << shapes[i];
    }
    TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                      list.str());
  }
  // Where the indexed dimensions stand together, the indices' shape takes their place; else it comes first.
  const auto begin = std::find(is_indexed.begin(), is_indexed.end(), true);
  const auto end = std::find(begin, is_indexed.end(), false);
  const bool together = std::find(end, is_indexed.end(), true) == is_indexed.end();
  const int64_t place = together ? begin - is_indexed.begin() : 0;
  for (int64_t i = 0; i <= self.dim(); ++i) {
    if (i == place) {
      shape.sizes.append(broadcast.begin(), broadcast.end());
    }
    if (i < self.dim() && !is_indexed[static_cast<size_t>(i)]) {
      shape.sizes.push_back(self.size(i));
    }
  }
  return shape;
}

at::Tensor& index_put(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate,
                      bool unsafe) {
  constexpr const char* kName = "aten::_index_put_impl_";
  const CurrentDevice current(device_of(kName, self));
  const Indices moved = move_indices(self, indices);
  check_same_device(kName, self.device(), moved);
  check_same_device_or_scalar(kName, self.device(), values);
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", values.scalar_type(), " for the source.");
  const IndexedShape shape = indexed_shape(self, moved);
  TORCH_CHECK(!shape.is_known || at::is_expandable_to(values.sizes(), shape.sizes),
              "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ", c10::IntArrayRef(shape.sizes));
  warn_if_expanded("index_put_", self, "tensor[indices] = tensor");
  const auto apart = [&](const at::Tensor& operand) { at::assert_no_overlap(self, operand); };
  for_each_tensor(apart, values);
  for_each_tensor(apart, moved);
  if (!shape.is_known && !accumulate && values.numel() == 1) {
    warn_if_expanded("masked_fill_", self, "tensor[mask] = scalar");  // by which the kernel does it
  }
  const bool fits = shape.is_known || (values.numel() == 1 && !shape.has_byte_mask);
  using Kernel = at::Tensor&(at::Tensor&, const Indices&, const at::Tensor&, bool, bool);
  launch_on_aliases<RunInplace<at::_ops::_index_put_impl_>, Kernel, 0, at::Tensor&, const Indices&, const at::Tensor&,
                    bool, bool>(kName, self.device(), fits ? Hears::kLater : Hears::kUnlessCaptured,
                                repeatable<Kernel, &at::cpu::_index_put_impl_>(), {}, std::nullopt, self, moved, values,
                                accumulate, unsafe);
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_index_put_impl_", TORCH_FN(index_put));
}

}  // namespace

}  // namespace openreg::ops
