// SPDX-License-Identifier: BSD-3-Clause
// The check that rejects operators for which the fallback to the CPU would be wrong.
#include <array>
#include <string>

#include "fallback/fallback.h"

namespace openreg::ops {

namespace {

struct UnsupportedOp {
  const char* name;
  const char* reason;
};

constexpr const char* kMakesMemory = "allocates memory, which only the device's own allocator can do";
constexpr const char* kMovesData =
    "moves data between the device and the host, and the fallback itself calls it for that";

// Operators that must not fall back although their schemas allow it.
constexpr std::array<UnsupportedOp, 6> kRefused = {{
    {"aten::_copy_from", kMovesData},
    {"aten::_copy_from_and_resize", kMovesData},
    {"aten::_local_scalar_dense",
     "reads a number on the host, which has to count as waiting for the device, and not as "
     "computing on the CPU"},
    {"aten::empty.memory_format", kMakesMemory},
    {"aten::empty_strided", kMakesMemory},
    {"aten::record_stream", "registers with the device's own allocator which stream uses the memory"},
}};

[[noreturn]] void refuse(const c10::OperatorHandle& op, const char* reason) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "operator ", op.operator_name(),
                              " has no kernel for the openreg device, and must not fall back to the CPU: it ", reason,
                              ". Register a kernel for PrivateUse1.");
}

}  // namespace

void check_can_fall_back(const c10::OperatorHandle& op) {
  for (const c10::Argument& result : op.schema().returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) {
      refuse(op, "gives a view, and the CPU's result would not share memory with the operand");
    }
    if (result.type()->kind() == c10::TypeKind::ClassType) {
      refuse(op, "gives an object of the host, which may keep its operands after their memory is freed");
    }
  }
  if (op.hasTag(at::Tag::inplace_view)) {
    refuse(op, "changes the sizes or the storage of its operand, and the CPU would change those of a copy");
  }
  const std::string name = c10::toString(op.operator_name());
  for (const UnsupportedOp& refused : kRefused) {
    if (name == refused.name) {
      refuse(op, refused.reason);
    }
  }
}

}  // namespace openreg::ops
