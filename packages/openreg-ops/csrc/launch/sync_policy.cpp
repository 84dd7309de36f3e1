// SPDX-License-Identifier: BSD-3-Clause
#include "launch/sync_policy.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "launch/dry_run.h"
#include "openreg/runtime/capture.h"
#include "support/sparse_components.h"

namespace openreg::ops {

namespace {

// The limit of the number of signatures, beyond which all are forgotten. A program has a few thousand.
constexpr size_t kMostSignatures = 65536;

struct KnownSignatures {
  std::mutex mutex;
  std::unordered_set<uint64_t> hashes;
};

KnownSignatures& known_signatures() {
  static auto* const signatures = new KnownSignatures;  // outlives threads that launch while the process exits
  return *signatures;
}

// Throws the exception of a dry run during a capture, with the advice to run the call once before the capture.
[[noreturn]] void rethrow_as_capture_error(const char* name, c10::Stream stream, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (c10::Error& error) {
    error.add_context(c10::str(
        name, " was checked with operands of zeros, because a capturing stream of ", stream.device(),
        " records work without running it; if the data of the operands decide whether the call is right, run it "
        "once before the capture"));
    throw;
  }
}

}  // namespace

LaunchSignature::LaunchSignature(const char* name) {
  add(std::string_view(name));
}

void LaunchSignature::add(const at::Tensor& operand) {
  if (!operand.defined()) {
    mix(0);
    return;
  }
  if (is_sparse(operand)) {
    const SparseShape shape(operand);
    has_sparse_ = true;
    mix(static_cast<uint64_t>(shape.layout));
    mix(shape.is_coalesced ? 1 : 2);
    add(c10::IntArrayRef(shape.sizes));
    for (const at::Tensor& component : sparse_components(operand)) {
      add(component);
    }
    return;
  }
  mix(1 + static_cast<uint64_t>(operand.scalar_type()));
  mix(operand.device().is_cpu() ? 1 : 2);
  mix((operand.is_conj() ? 1 : 0) + (operand.is_neg() ? 2 : 0));
  add(operand.sizes());
  add(operand.strides());
  bytes_ += operand.nbytes();
  const c10::StorageImpl* const storage = operand.storage().unsafeGetStorageImpl();
  auto* const first =
      std::find_if(storages_.begin(), storages_.end(), [&](const auto& of) { return of.first == storage; });
  mix(static_cast<uint64_t>(first - storages_.begin()));
  if (first == storages_.end()) {
    storages_.emplace_back(storage, operand.storage_offset());
  } else {
    mix(static_cast<uint64_t>(operand.storage_offset() - first->second));
  }
}

void LaunchSignature::add(std::string_view option) {
  mix(std::hash<std::string_view>()(option));
}

void LaunchSignature::add(int64_t option) {
  mix(static_cast<uint64_t>(option));
}

void LaunchSignature::add(double option) {
  mix(std::hash<double>()(option));
}

void LaunchSignature::add(const at::Scalar& option) {
  add(static_cast<int64_t>(option.type()));
  if (option.isComplex()) {
    const c10::complex<double> number = option.toComplexDouble();
    add(number.real());
    add(number.imag());
  } else {
    add(option.toDouble());
  }
}

void LaunchSignature::mix(uint64_t value) {
  hash_ = c10::hash_combine(hash_, value);
}

bool LaunchSignature::is_known() const {
  KnownSignatures& known = known_signatures();
  const std::lock_guard<std::mutex> lock(known.mutex);
  return known.hashes.count(hash_) != 0;
}

void LaunchSignature::remember() const {
  KnownSignatures& known = known_signatures();
  const std::lock_guard<std::mutex> lock(known.mutex);
  if (known.hashes.size() >= kMostSignatures) {
    known.hashes.clear();
  }
  known.hashes.insert(hash_);
}

bool has_to_wait(const char* name, c10::Stream stream, SyncPolicy policy, const LaunchSignature& signature,
                 c10::function_ref<void(runtime::AliasStorages&)> run) {
  if (policy == SyncPolicy::kSync) {
    check_sync_allowed(name, stream);
    return true;
  }
  const bool is_capturing = runtime::is_capturing(stream);
  if (policy == SyncPolicy::kSyncUnlessCapturing && !is_capturing) {
    return true;
  }
  if (signature.is_known()) {
    return false;
  }
  if (!signature.allows_dry_run()) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !is_capturing, name, " cannot be captured yet: only its kernel checks its operands, and a capturing stream of ",
        stream.device(), " records work without running it. Run it once before the capture");
    return true;
  }
  const std::exception_ptr failure = dry_run(run);
  if (failure == nullptr) {
    signature.remember();
    return false;
  }
  if (is_capturing) {
    rethrow_as_capture_error(name, stream, failure);
  }
  return true;
}

bool may_divide_by_zero(c10::ScalarType dtype, const at::Tensor& divisor) {
  if (!c10::isIntegralType(dtype, /*includeBool=*/true)) {
    return false;
  }
  // A number on the host is converted to the dtype, in which a large number may become zero.
  return !divisor.device().is_cpu() || (divisor.numel() == 1 && !divisor.to(dtype).is_nonzero());
}

}  // namespace openreg::ops
