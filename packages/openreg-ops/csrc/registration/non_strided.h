// SPDX-License-Identifier: BSD-3-Clause
// The short forms of operators on tensors that are made of others, sparse and nested ones, and on quantised ones. What
// PyTorch has for the CPU under their key serves in three ways, and a declaration says which (rehearsed.h has a
// fourth):
//
//   composed   the function touches memory through other operators alone: it runs on the host as it is, they launch
//   described  it reads memory, and the host knows the size of its result: a launch, as of any other operator
//              (described.h); kernels get aliases of sparse operands, too (launch/operand_record.h)
//   waiting    it reads memory, and the size of its result depends on data: it runs on the engine, and the host waits
//
//   TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
//     const DeclaresFor sparse(c10::DispatchKey::SparsePrivateUse1);
//     composed<kCoo>(library, kComposed);  // {"cat", "clone"}
//     described<describe_bmm, op::bmm>(library, at::native::bmm_out_sparse_cpu);
//     waiting<kCoo>(library, kWaiting);    // {"hspmm"}
//   }
//
// A function that is declared as composed and reads memory ends the process with a memory fault, as the host cannot
// read the device's. The tests call each one in all of its branches that they know of.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "registration/registry.h"

namespace openreg::ops {

// The keys under which PyTorch has functions for the CPU.
inline constexpr c10::DispatchKey kStrided = c10::DispatchKey::CPU;
inline constexpr c10::DispatchKey kCoo = c10::DispatchKey::SparseCPU;
inline constexpr c10::DispatchKey kCompressed = c10::DispatchKey::SparseCsrCPU;
inline constexpr c10::DispatchKey kQuantized = c10::DispatchKey::QuantizedCPU;
inline constexpr c10::DispatchKey kNested = c10::DispatchKey::NestedTensorCPU;

// Calls the function that the CPU has under `key`, with the device of the operands as the current one.
void run_composed(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);

// Runs that function on the engine over aliases, waits, and brings the results to the device. Throws what the function
// throws; and c10::Error while the stream is capturing, and where the sync debug mode forbids to wait.
void run_waiting(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);

// The same with a key that is known when a function is compiled, as the dispatcher calls boxed functions.
template <c10::DispatchKey kKey>
void enter_composed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_composed(op, kKey, stack);
}
template <c10::DispatchKey kKey>
void enter_waiting(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_waiting(op, kKey, stack);
}

// Declare operators by the names that native_functions.yaml has for them: "add.out".
template <c10::DispatchKey kKey>
void composed(torch::Library& library, c10::ArrayRef<const char*> names) {
  boxed<&enter_composed<kKey>>(library, names);
}
template <c10::DispatchKey kKey>
void waiting(torch::Library& library, c10::ArrayRef<const char*> names) {
  boxed<&enter_waiting<kKey>>(library, names);
}

// The functional, the out= and the in-place form of operators that have one of each.
template <c10::DispatchKey kKey>
void composed_forms(torch::Library& library, c10::ArrayRef<const char*> names) {
  for (const std::string name : names) {
    const std::string out = name + ".out";
    const std::string inplace = name + "_";
    composed<kKey>(library, {name.c_str(), out.c_str(), inplace.c_str()});
  }
}

// For functions that choose between ways. Op is the operator's type in at::_ops.
template <class Op, class... Args>
decltype(auto) call_composed(c10::DispatchKey key, Args&&... args) {
  return Op::redispatch(c10::DispatchKeySet(key), std::forward<Args>(args)...);
}
// Of an out= operator the result is that argument, the last one.
template <class Op, class... Args>
decltype(auto) call_waiting(c10::DispatchKey key, Args&&... args) {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
  torch::jit::Stack stack;
  torch::jit::push(stack, args...);
  run_waiting(op, key, &stack);
  if constexpr (std::is_same_v<typename c10::guts::function_traits<typename Op::schema>::return_type, at::Tensor>) {
    return torch::jit::pop(stack).toTensor();
  } else {
    return std::get<sizeof...(Args) - 1>(std::tie(args...));
  }
}

}  // namespace openreg::ops
