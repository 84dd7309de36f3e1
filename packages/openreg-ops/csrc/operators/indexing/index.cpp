// SPDX-License-Identifier: BSD-3-Clause
// x[indices], x[indices] = values, and the operators index_*. One value fits any mask, so its assignment is
// asynchronous. The assignment of several values under a mask is synchronous, because only the kernel counts the
// elements that the mask selects.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>

#include "launch/deterministic.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using Indices = c10::List<std::optional<at::Tensor>>;

// Returns the indices with those on the host copied to the device, as for x[torch.tensor([0, 2])].
Indices move_indices(const at::Tensor& self, const Indices& indices) {
  Indices moved;
  moved.reserve(indices.size());
  for (const std::optional<at::Tensor> index : indices) {
    const bool on_host = index.has_value() && index->defined() && index->device().is_cpu();
    moved.push_back(on_host ? std::optional<at::Tensor>(index->to(self.device())) : index);
  }
  return moved;
}

const auto kIndex = structured_operator<meta::structured_index_Tensor, op::index_Tensor>(cpu::index_outf, kChecked);

at::Tensor index(const at::Tensor& self, const Indices& indices) {
  return kIndex.functional(self, move_indices(self, indices));
}
at::Tensor& index_out(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
  return kIndex.out(self, move_indices(self, indices), out);
}

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// The shape of x[indices] as far as the host can compute it: it is unknown if it contains a mask's count.
struct IndexedShape {
  c10::DimVector sizes;
  bool is_known = true;
  bool has_byte_mask = false;  // some kernels reject these, on every device
};

void check_mask(const at::Tensor& self, const at::Tensor& mask, int64_t first) {
  for (int64_t i = 0; i < mask.dim(); ++i) {
    TORCH_CHECK_INDEX(first + i < self.dim(), "too many indices for tensor of dimension ", self.dim());
    TORCH_CHECK_INDEX(mask.size(i) == self.size(first + i), "The shape of the mask ", mask.sizes(), " at index ", i,
                      " does not match the shape of the indexed tensor ", self.sizes(), " at index ", first + i);
  }
}

// Returns the shape of self[indices]. Throws c10::IndexError, in PyTorch's words, for wrong indices.
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
  // If the indexed dimensions are adjacent, the indices' shape takes their place. Otherwise it comes first.
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
  using IndexPut = op::_index_put_impl_;
  constexpr Operator kIndexPut{IndexPut::name};
  const c10::Device device = device_of(IndexPut::name, self);
  const CurrentDeviceGuard current(device);
  const Indices moved = move_indices(self, indices);
  check_same_device(IndexPut::name, device, moved);
  check_same_device_or_scalar(IndexPut::name, device, values);
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
    warn_if_expanded("masked_fill_", self, "tensor[mask] = scalar");  // which the kernel calls
  }
  const bool fits = shape.is_known || (values.numel() == 1 && !shape.has_byte_mask);
  launch_owned<at::Tensor&, const Indices&, const at::Tensor&, bool, bool>(
      kIndexPut, device, fits ? SyncPolicy::kAsync : SyncPolicy::kSyncUnlessCapturing,
      kAccessesOf<IndexPut, SchemaOf<IndexPut>>.data(),
      deterministic_kernel<SchemaOf<IndexPut>, cpu::_index_put_impl_>(), self, moved, values, accumulate, unsafe);
  return self;
}

constexpr KernelTraits kIndexCopy{.overlap = kNoPart};

// Returns the operator with the kernel that the current deterministic mode selects. If several elements have one
// destination, the deterministic kernel keeps the last one.
auto index_copy_now() {
  using Kernel = SchemaOf<op::index_copy_out>;
  return structured_operator<meta::structured_index_copy, op::index_copy>(
      deterministic_kernel<Kernel, cpu::index_copy_outf>(), kIndexCopy);
}

bool is_index(const at::Tensor& index) {
  return index.scalar_type() == at::kLong || index.scalar_type() == at::kInt;
}

OutputSpec meta_index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(is_index(index),
              "index_select(): Expected dtype int32 or int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  OutputSpec spec = output_of_shape(self);
  if (self.dim() > 0) {
    spec.sizes[static_cast<size_t>(wrapped)] = index.numel();
  }
  return spec;
}

void check_index_fill(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  check_same_device("aten::index_fill_", self.device(), index);
  TORCH_CHECK_INDEX(is_index(index), "index_fill_(): Expected dtype int64 for index.");
  TORCH_CHECK(self.is_complex() || !value.isComplex(),
              "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  check_scalar_range(value, self.scalar_type());
  at::maybe_wrap_dim(dim, self.dim());
  at::assert_no_overlap(self, index);
  warn_if_expanded("index_fill_", self, "tensor[mask] = scalar");
}

void check_index_fill_tensor(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  check_index_fill(self, dim, index, value.is_complex() ? at::Scalar(c10::complex<double>()) : at::Scalar(0));
}

const auto kIndexFill =
    unstructured_overload<check_index_fill_tensor, op::index_fill__int_Tensor>(cpu::index_fill_, {.expands = true});

// Accepts a 0-dim CPU tensor as the value.
at::Tensor& index_fill_tensor(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  if (value.device().is_cpu() && value.dim() == 0) {
    return self.index_fill_(dim, index, value.item());
  }
  return kIndexFill(self, dim, index, value);
}

// Works around failures of PyTorch's kernel for products in float16 and bfloat16. It fails on slices of one element,
// which it takes for a number, and on values that repeat within a slice. So slices of one element are reduced as one
// row, and values are copied to contiguous memory.
at::Tensor& index_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                             c10::string_view reduce, bool include_self, at::Tensor& out) {
  if (reduce != "prod" || !at::isReducedFloatingType(self.scalar_type())) {
    return cpu::index_reduce_outf(self, dim, index, source, reduce, include_self, out);
  }
  if (self.dim() > 1 && self.numel() == self.size(dim)) {
    at::Tensor row = out.view(-1);
    cpu::index_reduce_outf(self.reshape(-1), 0, index, source.reshape(-1), reduce, include_self, row);
    return out;
  }
  return cpu::index_reduce_outf(self, dim, index, source.contiguous(), reduce, include_self, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_index_put_impl_>(library, index_put);
  function<op::index_Tensor>(library, index);
  function<op::index_Tensor_out>(library, index_out);
  structured<meta::structured_index_add, op::index_add, op::index_add_>(library, cpu::index_add_outf,
                                                                        checked(KernelTraits{.overlap = kNoPart}));
  function<op::index_copy>(library, [](auto... args) { return index_copy_now().functional(args...); }, kIndexCopy);
  function<op::index_copy_out>(
      library, [](auto... args) -> at::Tensor& { return index_copy_now().out(args...); }, kIndexCopy);
  function<op::index_copy_>(
      library, [](at::Tensor& self, auto... rest) -> at::Tensor& { return index_copy_now().inplace(self, rest...); },
      kIndexCopy);
  unstructured<check_index_fill, op::index_fill__int_Scalar>(library, cpu::index_fill_, {.expands = true});
  function<op::index_fill__int_Tensor>(library, index_fill_tensor, kIndexFill.op.traits);
  structured<meta::structured_index_reduce, op::index_reduce, op::index_reduce_>(
      library, index_reduce_out, {.refused = kBoolean | kComplex, .overlap = kNoPart},
      {.check_outputs = [](auto... /*arguments*/) {
        TORCH_WARN_ONCE("index_reduce() is in beta and the API may change at any time");
      }});
  unstructured<meta_index_select, op::index_select>(library, cpu::index_select_outf, kChecked);
}

}  // namespace

}  // namespace openreg::ops
