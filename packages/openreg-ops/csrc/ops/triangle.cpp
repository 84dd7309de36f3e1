// SPDX-License-Identifier: BSD-3-Clause
// Triangular parts, and the factorisations that end in them: structured, with a detour for some outputs.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_lu_cpu_dispatch.h>
#include <ATen/ops/linalg_lu_meta.h>
#include <ATen/ops/linalg_lu_ops.h>
#include <ATen/ops/lu_unpack_cpu_dispatch.h>
#include <ATen/ops/lu_unpack_meta.h>
#include <ATen/ops/lu_unpack_ops.h>
#include <ATen/ops/tril_cpu_dispatch.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_cpu_dispatch.h>
#include <ATen/ops/triu_meta.h>
#include <ATen/ops/triu_ops.h>

#include <tuple>

#include "common/structured.h"

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(linalg_lu, linalg_lu_out, linalg_lu)
OPENREG_STRUCTURED_SPEC(lu_unpack, lu_unpack_out, lu_unpack)
OPENREG_STRUCTURED_SPEC(tril, tril_out, tril)
OPENREG_STRUCTURED_SPEC(triu, triu_out, triu)

// Whether the kernel finds all elements of an output: it takes the matrices of a batch to follow each other, and writes
// beyond them if they do not.
bool is_in_order(const at::Tensor& out) {
  return out.dim() <= 2 || out.is_contiguous() || out.mT().is_contiguous();
}

// What the CPU kernel gets for an argument.
template <class T>
struct Place {
  static void check(const T& /*argument*/) {}

  explicit Place(T argument) : argument(argument) {}
  T get() { return argument; }
  void finish() {}

  T argument;
};

// An output, which is copied to its place where the kernel does not find it.
template <>
struct Place<at::Tensor&> {
  static void check(const at::Tensor& out) {
    if (!is_in_order(out)) {
      at::assert_no_internal_overlap(out);
    }
  }

  explicit Place(at::Tensor& out)
      : out(out), filled(is_in_order(out) ? out : at::empty_like(out, at::MemoryFormat::Contiguous)) {}
  at::Tensor& get() { return filled; }
  void finish() {
    if (!filled.is_same(out)) {
      out.copy_(filled);
    }
  }

  at::Tensor& out;
  at::Tensor filled;
};

template <class Spec, class Signature>
struct Batched;

template <class Spec, class Result, class... Args>
struct Batched<Spec, Result(Args...)> : Spec {
  using Kernel = void(Args...);
  static Kernel* kernel() { return &compute; }

  // Has no kernel of its own to launch, but has to see the outputs before the launch.
  static bool launch(c10::Device /*device*/, Args... args) {
    (Place<Args>::check(args), ...);
    return false;
  }

  static void compute(Args... args) {
    std::tuple<Place<Args>...> places{Place<Args>(args)...};
    std::apply([](auto&... place) { Spec::kernel()(place.get()...); }, places);
    std::apply([](auto&... place) { (place.finish(), ...); }, places);
  }
};

template <class Spec>
using BatchedSpec = Batched<Spec, typename Spec::Kernel>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_structured<BatchedSpec<Spec_linalg_lu>>(library);
  register_structured<BatchedSpec<Spec_lu_unpack>>(library);
  register_structured<BatchedSpec<Spec_tril>, at::_ops::tril_>(library);
  register_structured<BatchedSpec<Spec_triu>, at::_ops::triu_>(library);
}

}  // namespace

}  // namespace openreg::ops
