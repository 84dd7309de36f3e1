// SPDX-License-Identifier: BSD-3-Clause
#include "transport/flat_buffer.h"

#include <ATen/ops/empty.h>

namespace openreg::distributed {

namespace {

int64_t count(const std::vector<at::Tensor>& tensors) {
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) {
    elements += tensor.numel();
  }
  return elements;
}

// Returns true if the tensors are adjacent, in order, in one storage.
bool are_adjacent(const std::vector<at::Tensor>& tensors) {
  const at::Tensor& first = tensors.front();
  int64_t offset = first.storage_offset();
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_contiguous() || tensor.is_conj() || tensor.is_neg() || !tensor.is_alias_of(first) ||
        tensor.storage_offset() != offset) {
      return false;
    }
    offset += tensor.numel();
  }
  return true;
}

at::Tensor span(const std::vector<at::Tensor>& tensors) {
  return tensors.front().as_strided({count(tensors)}, {1}, tensors.front().storage_offset());
}

}  // namespace

at::Tensor flatten(const std::vector<at::Tensor>& tensors, bool copy) {
  if (!copy && are_adjacent(tensors)) {
    return span(tensors);
  }
  at::Tensor buffer = at::empty({count(tensors)}, tensors.front().options());
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    buffer.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
    offset += tensor.numel();
  }
  return buffer;
}

at::Tensor flat_buffer_for(const std::vector<at::Tensor>& tensors, bool copy) {
  return !copy && are_adjacent(tensors) ? span(tensors) : at::empty({count(tensors)}, tensors.front().options());
}

void unflatten_into(const at::Tensor& buffer, const std::vector<at::Tensor>& tensors) {
  if (buffer.is_alias_of(tensors.front())) {
    return;
  }
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(buffer.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

}  // namespace openreg::distributed
