// SPDX-License-Identifier: BSD-3-Clause
// Templates that register operators on sparse, nested and quantized tensors. They use PyTorch's CPU functions for these
// tensors in one of three ways, which each registration names (a fourth is in cached_meta.h):
//
//   host_composite  The function accesses memory only through other operators. It runs on the host, and these launch.
//   unstructured    It accesses memory, and the host can compute its result's size. It is launched (unstructured.h).
//   synchronous     It accesses memory, and its result's size depends on data. It runs on the engine; the host blocks.
//
//   TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
//     const RegistrationKeyGuard sparse(c10::DispatchKey::SparsePrivateUse1);
//     host_composite<kCoo>(library, {"cat", "clone"});
//     unstructured<meta_bmm, op::bmm>(library, at::native::bmm_out_sparse_cpu);
//     synchronous<kCoo>(library, {"hspmm"});
//   }
//
// Kernels get aliases of sparse operands, too (launch/operand_descriptor.h). A function that is registered as
// host_composite but reads memory ends the process with a memory fault, because the host cannot read device memory.
// The tests call each such function in all of its known branches.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "registration/registry.h"

namespace openreg::ops {

// The dispatch keys under which PyTorch has functions for the CPU.
inline constexpr c10::DispatchKey kStrided = c10::DispatchKey::CPU;
inline constexpr c10::DispatchKey kCoo = c10::DispatchKey::SparseCPU;
inline constexpr c10::DispatchKey kCompressed = c10::DispatchKey::SparseCsrCPU;
inline constexpr c10::DispatchKey kQuantized = c10::DispatchKey::QuantizedCPU;
inline constexpr c10::DispatchKey kNested = c10::DispatchKey::NestedTensorCPU;

// Calls PyTorch's function for `key`, such as SparseCPU, on the host. The device of the operands is current during the
// call.
void run_host_composite(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);

// Runs PyTorch's function for `key` on the engine over aliases (CPU tensors over the operands' bytes), blocks until it
// is complete, and copies the results to the device. Throws the function's exception, and c10::Error if the stream is
// capturing or the mode of torch.openreg.set_sync_debug_mode() forbids synchronizing.
void run_synchronous(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);

// Same as `run_host_composite()` and `run_synchronous()`, except that the key is a template argument, because the
// dispatcher passes none to boxed functions.
template <c10::DispatchKey kKey>
void enter_host_composite(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_host_composite(op, kKey, stack);
}
template <c10::DispatchKey kKey>
void enter_synchronous(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_synchronous(op, kKey, stack);
}

// Register operators by their names in native_functions.yaml, such as "add.out".
template <c10::DispatchKey kKey>
void host_composite(torch::Library& library, c10::ArrayRef<const char*> names) {
  boxed<&enter_host_composite<kKey>>(library, names);
}
template <c10::DispatchKey kKey>
void synchronous(torch::Library& library, c10::ArrayRef<const char*> names) {
  boxed<&enter_synchronous<kKey>>(library, names);
}

// Registers the functional, the out= and the in-place overload of operators that have one of each.
template <c10::DispatchKey kKey>
void host_composite_overloads(torch::Library& library, c10::ArrayRef<const char*> names) {
  for (const std::string name : names) {
    const std::string out = name + ".out";
    const std::string inplace = name + "_";
    host_composite<kKey>(library, {name.c_str(), out.c_str(), inplace.c_str()});
  }
}

// Calls PyTorch's function of Op (at::_ops) for `key` on the host. Functions that choose between the three ways at each
// call use it.
template <class Op, class... Args>
decltype(auto) call_host_composite(c10::DispatchKey key, Args&&... args) {
  return Op::redispatch(c10::DispatchKeySet(key), std::forward<Args>(args)...);
}
// Calls `run_synchronous()` for Op (at::_ops). An out= operator returns its out= argument, which is the last one.
template <class Op, class... Args>
decltype(auto) call_synchronous(c10::DispatchKey key, Args&&... args) {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
  torch::jit::Stack stack;
  torch::jit::push(stack, args...);
  run_synchronous(op, key, &stack);
  if constexpr (std::is_same_v<typename c10::guts::function_traits<typename Op::schema>::return_type, at::Tensor>) {
    return torch::jit::pop(stack).toTensor();
  } else {
    return std::get<sizeof...(Args) - 1>(std::tie(args...));
  }
}

}  // namespace openreg::ops
