// SPDX-License-Identifier: BSD-3-Clause
// The minimal set: the operators that every backend writes first, and what OPENREG_OPS makes of them. This folder and
// the fallback are the module openreg_ops._minimal; all other operators are openreg_ops._C, which
// OPENREG_OPS=minimal leaves out.
#pragma once

#include <torch/library.h>

#include <array>
#include <utility>

namespace openreg::ops::minimal {

// What nothing else can provide: memory, other shapes over the same memory, and the ways between device and host. With
// these, the fallback runs every operator that has a CPU kernel.
inline constexpr std::array<const char*, 12> kSet = {
    "_copy_from",          "_copy_from_and_resize",
    "_local_scalar_dense", "_reshape_alias",
    "as_strided",          "empty.memory_format",
    "empty_strided",       "resize_",
    "set_.source_Storage", "set_.source_Storage_storage_offset",
    "set_.source_Tensor",  "view",
};

// Throws c10::ValueError that names variable, value and the accepted form. The functions below never throw, because
// they are asked while the library loads, before an error can reach Python; they take nonsense for the default.
void check_settings();

// Whether OPENREG_OPS=minimal.
bool is_alone();

// Whether OPENREG_OPS_LEAVE_OUT, a comma-separated list of names in the set (aten::view,aten::resize_), has this one.
// It shows what an entry is for, and counts only together with OPENREG_OPS=minimal.
bool is_left_out(const char* name);

// Registers an entry of the set, unless it is left out.
template <class Kernel>
void implement(torch::Library& library, const char* name, Kernel&& kernel) {
  if (!is_left_out(name)) {
    library.impl(name, std::forward<Kernel>(kernel));
  }
}

}  // namespace openreg::ops::minimal
