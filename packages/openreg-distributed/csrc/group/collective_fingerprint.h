// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace openreg::distributed {

// What a call says about itself to the other ranks, before anything moves (source: Agreement).
struct Agreed {
  const char* algorithm = "";       // how the transport carries it; calls of different names may have one. A literal
  const char* reduction = nullptr;  // a literal, null where nothing is reduced
  int root = -1;
  std::vector<uint64_t> sent;      // bytes for each rank, or one number for every one
  std::vector<uint64_t> expected;  // bytes from each rank, or one number for every one
  std::vector<uint64_t> pieces;    // bytes of each transfer, where there are several

  // All ranks give as many bytes.
  static Agreed alike(const char* algorithm, const std::vector<at::Tensor>& tensors);
  // Bytes of one tensor for, and from, each rank.
  static Agreed by_rank(const char* algorithm, const std::vector<at::Tensor>& sent,
                        const std::vector<at::Tensor>& expected);

  // Differs, as good as certainly, where ranks give anything but sizes differently. Of a reduction `dtype` counts.
  uint64_t contract(std::string_view dtype) const;
};

}  // namespace openreg::distributed
