// SPDX-License-Identifier: BSD-3-Clause
#include "flat_buffer.h"

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

// Whether the tensors lie one after the other in one storage, with nothing between them.
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

at::Tensor pack(const std::vector<at::Tensor>& tensors, bool copy) {
  if (!copy && are_adjacent(tensors)) {
    return span(tensors);
  }
  at::Tensor room = at::empty({count(tensors)}, tensors.front().options());
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    room.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
    offset += tensor.numel();
  }
  return room;
}

at::Tensor room_for(const std::vector<at::Tensor>& tensors, bool copy) {
  return !copy && are_adjacent(tensors) ? span(tensors) : at::empty({count(tensors)}, tensors.front().options());
}

void unpack(const at::Tensor& room, const std::vector<at::Tensor>& tensors) {
  if (room.is_alias_of(tensors.front())) {
    return;
  }
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(room.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

}  // namespace openreg::distributed
