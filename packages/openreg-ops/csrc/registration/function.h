// SPDX-License-Identifier: BSD-3-Clause
// A template that registers an operator that is written by hand: a function with the operator's own signature, which
// checks the operands, allocates the outputs and calls launch().
//
//   function<op::linalg_lstsq_out>(library, lstsq_out, kLstsq.traits);
#pragma once

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// Registers the overload Op (at::_ops). `traits` are those of the function's launches. They are only recorded, for
// registered_traits(), because tests compare them with what the CPU kernels reject.
template <class Op>
void function(torch::Library& library, SchemaOf<Op>* implementation, const KernelTraits& traits = {}) {
  register_overload(library, {Op::name, Op::overload_name}, traits, torch::CppFunction(implementation));
}

}  // namespace openreg::ops
