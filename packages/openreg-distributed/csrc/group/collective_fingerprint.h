// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace openreg::distributed {

// The properties of a call that have to agree with those on the other ranks: `sent` with their `expected`, all others
// by equality. OperationMatcher compares them before the transport (the c10d backend that moves bytes between ranks,
// Gloo) moves data (source: the fingerprint of c10d's ProcessGroupWrapper).
struct CollectiveFingerprint {
  // A literal that names the algorithm of the transport. Calls that use the same algorithm have the same name.
  const char* algorithm = "";
  const char* reduction = nullptr;  // A literal such as "SUM"; null if the call does not reduce.
  int root = -1;                    // -1 if the call has no root.
  std::vector<uint64_t> sent;       // Bytes for each rank, or one number for all ranks.
  std::vector<uint64_t> expected;   // Bytes from each rank, or one number for all ranks.
  std::vector<uint64_t> pieces;     // Bytes of each tensor, if each has a transfer of its own.

  // Returns the fingerprint of a call to which all ranks pass the same number of bytes.
  static CollectiveFingerprint alike(const char* algorithm, const std::vector<at::Tensor>& tensors);
  // Returns the fingerprint of a call with one tensor for, and one from, each rank.
  static CollectiveFingerprint by_rank(const char* algorithm, const std::vector<at::Tensor>& sent,
                                       const std::vector<at::Tensor>& expected);

  // Returns a hash of all members except `sent` and `expected`, which are compared as numbers. `dtype` is part of the
  // hash only if the call reduces, and `pieces` only if it has more than one element.
  uint64_t hash(std::string_view dtype) const;
};

}  // namespace openreg::distributed
