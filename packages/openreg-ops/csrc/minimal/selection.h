// SPDX-License-Identifier: BSD-3-Clause
// The minimal set, which is the operators that every backend writes first, and its selection by OPENREG_OPS. This
// folder and the fallback are the module openreg_ops._minimal. All other operators are the module openreg_ops._C, which
// is not loaded if OPENREG_OPS=minimal.
#pragma once

#include <torch/library.h>

#include <array>
#include <utility>

namespace openreg::ops::minimal {

// The operators that no other code can provide: memory, other shapes over the same memory, and copies between device
// and host. With these, the fallback (fallback/fallback.h) runs every operator that has a CPU kernel.
inline constexpr std::array<const char*, 12> kSet = {
    "_copy_from",          "_copy_from_and_resize",
    "_local_scalar_dense", "_reshape_alias",
    "as_strided",          "empty.memory_format",
    "empty_strided",       "resize_",
    "set_.source_Storage", "set_.source_Storage_storage_offset",
    "set_.source_Tensor",  "view",
};

// Throws c10::ValueError, with variable, value and accepted form, for an invalid variable. The functions below never
// throw, because they run while the library loads, before an error can reach Python. For them an invalid value is the
// default.
void check_settings();

// Returns true if OPENREG_OPS=minimal.
bool is_minimal_only();

// Returns true if OPENREG_OPS_LEAVE_OUT contains `name`. The variable is a comma-separated list of names in the set
// (aten::view,aten::resize_), and is valid only with OPENREG_OPS=minimal. Leaving an operator out shows what needs it.
bool is_excluded(const char* name);

// Registers a kernel of the set, unless the operator is excluded.
template <class Kernel>
void implement(torch::Library& library, const char* name, Kernel&& kernel) {
  if (!is_excluded(name)) {
    library.impl(name, std::forward<Kernel>(kernel));
  }
}

}  // namespace openreg::ops::minimal
