// SPDX-License-Identifier: BSD-3-Clause
// A short form for operators that are written by hand. A function with the operator's own signature checks the
// operands, allocates the outputs and calls launch(), as the functions of csrc/minimal do without it.
//
//   function<op::linalg_lstsq_out>(library, lstsq_out, kLstsq.traits);
#pragma once

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// Registers one overload. `traits` are those of the function's launches, because tests compare them with the CPU.
template <class Form>
void function(torch::Library& library, SchemaOf<Form>* implementation, const KernelTraits& traits = {}) {
  register_overload(library, {Form::name, Form::overload_name}, traits, torch::CppFunction(implementation));
}

}  // namespace openreg::ops
