// SPDX-License-Identifier: BSD-3-Clause
#include "common/operand_record.h"

namespace openreg::ops {

OperandRecord::Sparse::Sparse(const at::Tensor& operand, runtime::Aliases& aliases) : shape(operand) {
  const SparseMembers tensors = members_of(operand);
  for (size_t i = 0; i < tensors.size(); ++i) {
    members[i] = aliases.record(tensors[i]);
  }
}

at::Tensor& OperandRecord::Sparse::open(runtime::AliasStorages& storages) {
  const SparseMembers opened{members[0].open(storages), members[1].open(storages), members[2].open(storages)};
  check_places(shape, opened);  // in each run, as the bytes may be others
  alias = assemble(shape, opened);
  return alias;
}

}  // namespace openreg::ops
