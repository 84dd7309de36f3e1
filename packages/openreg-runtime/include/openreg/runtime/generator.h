// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "openreg/runtime/export.h"
#include "openreg/runtime/torch_versions.h"

namespace openreg::runtime {

// Where in a Philox sequence a replay of a graph starts. Set on the device, by an entry of the stream before the
// replay.
struct PhiloxCell {
  uint64_t seed;
  uint64_t offset;  // in numbers of 128 bits
};

// Where in a Philox sequence a kernel starts; a value that a launch captures. A kernel in a graph starts at a distance
// from where the replay does. seed() and offset() are for the kernel, when it runs.
class PhiloxState {
 public:
  PhiloxState(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}
  PhiloxState(std::shared_ptr<const PhiloxCell> cell, uint64_t distance) : offset_(distance), cell_(std::move(cell)) {}

  uint64_t seed() const { return cell_ == nullptr ? seed_ : cell_->seed; }
  uint64_t offset() const { return cell_ == nullptr ? offset_ : cell_->offset + offset_; }

 private:
  uint64_t seed_ = 0;
  uint64_t offset_;  // in numbers of 128 bits
  std::shared_ptr<const PhiloxCell> cell_;
};

// Counter-based random numbers: which numbers a kernel draws is settled on the host when it is launched, so results
// depend neither on the schedule nor on the number of threads. The state is 16 bytes: seed, then offset (source: the
// layout that torch/distributed/tensor/_random.py reads).
class OPENREG_RUNTIME_API Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index);

  // Reserves `count` numbers of 128 bits for one launch on the current stream; if that is capturing, of each replay.
  // Takes mutex_.
  PhiloxState reserve(uint64_t count);

  // The interface of c10::GeneratorImpl; as there, the caller holds mutex_ where threads share the generator.
  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& new_state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
#if OPENREG_TORCH_HAS_PHILOX_STATE
  // Reserves `increment` numbers of 32 bits, rounded up to a multiple of 4. While the current stream is capturing, seed
  // and offset are tensors on the device, which each replay writes.
  void philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset, at::Tensor& intragraph_offset) override;
#endif

  static c10::DeviceType device_type();

 private:
  struct State : c10::intrusive_ptr_target {
    uint64_t seed = c10::default_rng_seed_val;
    uint64_t offset = 0;
  };

  Generator(c10::DeviceIndex index, c10::intrusive_ptr<State> state);
  Generator* clone_impl() const override;
  PhiloxState reserve_locked(uint64_t count);  // reserve() where the caller holds mutex_
  void check_not_capturing(const char* function) const;

  c10::intrusive_ptr<State> state_;  // shared between graph-safe copies
};

// The default generator of a device, made on first use; -1 means the current device.
OPENREG_RUNTIME_API const at::Generator& default_generator(c10::DeviceIndex index = -1);
// A new one with the default seed.
OPENREG_RUNTIME_API at::Generator make_generator(c10::DeviceIndex index = -1);
// The caller's generator, or the device's default; throws c10::Error when it belongs to another device.
OPENREG_RUNTIME_API Generator& generator_or_default(const std::optional<at::Generator>& generator,
                                                    c10::DeviceIndex index);

}  // namespace openreg::runtime
