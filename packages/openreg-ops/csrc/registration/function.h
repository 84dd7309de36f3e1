// SPDX-License-Identifier: BSD-3-Clause
// A template that registers an operator by a function with the operator's own signature. As a rule this is one that is
// written by hand, which checks the operands, allocates the outputs and calls launch(). It can also be a function of
// at::native that calls other operators.
//
//   function<op::linalg_lstsq_out>(library, lstsq_out, kLstsq.traits);
#pragma once

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// Registers the overload Op (at::_ops). `traits` should be those that the function passes to launch(). Here they do not
// affect launches: registered_traits() returns them to tests, which compare them with what the CPU kernels reject.
template <class Op>
void function(torch::Library& library, SchemaOf<Op>* implementation, const KernelTraits& traits = {}) {
  register_overload(library, {Op::name, Op::overload_name}, traits, torch::CppFunction(implementation));
}

}  // namespace openreg::ops
