// SPDX-License-Identifier: BSD-3-Clause
// A short form for operators that are written by hand. A function with the operator's own signature checks the
// operands, allocates the outputs and calls launch(), as the functions of csrc/minimal do without it.
//
//   function<op::linalg_lstsq_out>(library, lstsq_out, kLstsq.traits);
#pragma once

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// Registers the overload Op (at::_ops). `traits` are those of the function's launches. They are only recorded, because
// tests compare them with the CPU.
template <class Op>
void function(torch::Library& library, SchemaOf<Op>* implementation, const KernelTraits& traits = {}) {
  register_overload(library, {Op::name, Op::overload_name}, traits, torch::CppFunction(implementation));
}

}  // namespace openreg::ops
