// SPDX-License-Identifier: BSD-3-Clause
// The short form for operators that are written by hand: a function of the operator's own signature, which checks the
// operands, makes the outputs and calls launch(). csrc/minimal is what it abbreviates.
//
//   function<op::native_layer_norm>(library, native_layer_norm, kLayerNorm.rule);
#pragma once

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// Declares one form. The rule is the one that the function's launches use, for tests to compare with the CPU.
template <class Form>
void function(torch::Library& library, SchemaOf<Form>* implementation, const KernelRule& rule = {}) {
  register_form(library, {Form::name, Form::overload_name}, rule, torch::CppFunction(implementation));
}

}  // namespace openreg::ops
