// SPDX-License-Identifier: BSD-3-Clause
#include "common/failure.h"

#include <ATen/SparseCsrTensorUtils.h>
#include <c10/util/Exception.h>
#include <c10/util/hash.h>

#include <cmath>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "common/sparse_members.h"
#include "openreg/runtime/capture.h"

namespace openreg::ops {

namespace {

// A program has a few hundred kinds. Beyond this many, new ones wait each time.
constexpr size_t kMostKinds = 65536;

struct PassedKinds {
  std::mutex mutex;
  std::unordered_set<uint64_t> hashes;
};

PassedKinds& passed_kinds() {
  static auto* const kinds = new PassedKinds;  // outlives threads that launch while the process exits
  return *kinds;
}

}  // namespace

LaunchKind::LaunchKind(const char* name) : name_(name) {
  add(std::string_view(name));
}

void LaunchKind::add(const at::Tensor& operand) {
  if (!operand.defined()) {
    mix(0);
    return;
  }
  if (is_sparse(operand)) {
    const SparseShape shape(operand);
    mix(static_cast<uint64_t>(shape.layout));
    mix((static_cast<uint64_t>(shape.sizes.size()) << 1) | (shape.is_coalesced ? 1U : 0U));
    if (shape.layout == c10::kSparseBsr || shape.layout == c10::kSparseBsc) {
      const auto block = at::sparse_csr::getBlockSize(operand);
      mix(block[0] == block[1] ? 1 : 2);  // MKL's products take square blocks alone
    }
    for (const at::Tensor& member : members_of(operand)) {
      add(member);
    }
    return;
  }
  is_empty_ |= operand.numel() == 0;
  mix(1 + static_cast<uint64_t>(operand.scalar_type()));
  mix((static_cast<uint64_t>(operand.dim()) << 3) | (operand.numel() == 0 ? 4U : 0U) |
      (operand.is_contiguous() ? 2U : 0U) | (operand.device().is_cpu() ? 1U : 0U));
}

void LaunchKind::add(std::string_view option) {
  mix(std::hash<std::string_view>()(option));
}

void LaunchKind::add(int64_t option) {
  mix(static_cast<uint64_t>(option));
}

void LaunchKind::add(double option) {
  constexpr double kMost = 4;
  const bool is_special = std::isinf(option) || (std::abs(option) <= kMost && std::floor(2 * option) == 2 * option);
  mix(is_special ? std::hash<double>()(option) : static_cast<uint64_t>(kAbsent));
}

void LaunchKind::add(const at::Scalar& option) {
  add(static_cast<int64_t>(option.type()));
  if (option.isComplex()) {
    const c10::complex<double> number = option.toComplexDouble();
    add(number.real());
    add(number.imag());
  } else {
    add(option.toDouble());
  }
}

void LaunchKind::add(c10::IntArrayRef option) {
  add(static_cast<int64_t>(option.size()));
  for (const int64_t number : option) {
    add(number);
  }
}

void LaunchKind::mix(uint64_t value) {
  hash_ = c10::hash_combine(hash_, value);
}

bool LaunchKind::has_passed() const {
  PassedKinds& kinds = passed_kinds();
  const std::lock_guard<std::mutex> lock(kinds.mutex);
  return kinds.hashes.count(hash_) != 0;
}

void LaunchKind::remember() const {
  PassedKinds& kinds = passed_kinds();
  const std::lock_guard<std::mutex> lock(kinds.mutex);
  if (!is_empty_ && kinds.hashes.size() < kMostKinds) {
    kinds.hashes.insert(hash_);
  }
}

bool LaunchKind::has_to_wait(Hears hears, bool is_common, c10::Stream stream) const {
  if (hears == Hears::kAtTheCall) {
    prepare_to_wait(name_, stream);
    return true;
  }
  const bool capturing = runtime::is_capturing(stream);
  if (hears == Hears::kFirst || !is_common) {
    const bool passed = has_passed();
    TORCH_CHECK_NOT_IMPLEMENTED(passed || !capturing, name_,
                                " cannot be captured yet: whether it is implemented for these dtypes shows when its "
                                "kernel runs, and a capturing "
                                "stream of ",
                                stream.device(), " records work without running it. Run it once before the capture");
    return !passed || (hears == Hears::kUnlessCaptured && !capturing);
  }
  return !capturing;
}

bool may_divide_by_zero(c10::ScalarType dtype, const at::Tensor& divisor) {
  if (!c10::isIntegralType(dtype, /*includeBool=*/true)) {
    return false;
  }
  // A number of the host is converted to the dtype, in which a large one may be zero.
  return !divisor.device().is_cpu() || (divisor.numel() == 1 && !divisor.to(dtype).is_nonzero());
}

}  // namespace openreg::ops
