// SPDX-License-Identifier: BSD-3-Clause
// The random number generator of the device (source: c10::GeneratorImpl), and the Philox states of launches. Philox is
// a counter-based generator: a seed and an offset determine each number, so threads compute numbers independently.
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

// The seed and offset at which the random numbers of one replay of a graph start. A task that is enqueued before the
// replay sets them. The offset counts steps, which are values of Philox's counter: each gives 128 random bits.
struct ReplayPhiloxState {
  uint64_t seed;
  uint64_t offset;  // in steps
};

// The seed and offset at which the random numbers of a kernel start (source: at::PhiloxCudaState). The kernel captures
// this object by value. In a graph, they start at a fixed offset from those of the replay, which are known only when
// the replay runs. Therefore only the kernel, while it runs, may call seed() and offset().
class PhiloxState {
 public:
  PhiloxState(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}
  PhiloxState(std::shared_ptr<const ReplayPhiloxState> replay, uint64_t intragraph_offset)
      : offset_(intragraph_offset), replay_(std::move(replay)) {}

  uint64_t seed() const { return replay_ == nullptr ? seed_ : replay_->seed; }
  uint64_t offset() const { return replay_ == nullptr ? offset_ : replay_->offset + offset_; }

 private:
  uint64_t seed_ = 0;
  uint64_t offset_;                                  // in steps; in a graph, from the start of the replay
  std::shared_ptr<const ReplayPhiloxState> replay_;  // null outside of a graph
};

// A Philox generator. The host reserves a kernel's numbers at the launch, so results depend neither on the order of
// tasks nor on the number of threads. The offset that PyTorch reads and sets counts numbers of 32 bits, of which a step
// has four, so it is a multiple of 4 (source: CUDAGeneratorImpl). get_state() returns 16 bytes: seed, then offset.
// torch/distributed/tensor/_random.py computes with both: it counts one number for each element of a tensor.
class OPENREG_RUNTIME_API Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index);

  // Reserves `count` steps for one launch on the current stream, and returns where they start. If the stream is
  // capturing, reserves as many in each replay. Locks mutex_, so the caller must not hold it. Throws c10::Error if the
  // capture was not begun by torch.accelerator.Graph.
  PhiloxState reserve(uint64_t count);

  // The functions below override c10::GeneratorImpl's. The caller holds mutex_ if threads share the generator.
  // Functions that read or set the offset or the state, or set the seed, throw c10::Error while the current stream is
  // capturing, except graphsafe_get_state() and graphsafe_set_state(). set_offset() and set_state() throw ValueError,
  // and change nothing, if the offset is not a multiple of 4.
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
  // Reserves `increment` numbers of 32 bits, rounded up to a multiple of 4. Sets three tensors of one int64 to the
  // place at which they start: `seed`, and the sum of `offset` and `intragraph_offset`. While the current stream is
  // capturing, `seed` and `offset` are on the device, and each replay writes them. Otherwise all three are on the CPU.
  // The caller holds mutex_ if threads share the generator.
  void philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset, at::Tensor& intragraph_offset) override;
#endif

  static c10::DeviceType device_type();

 private:
  struct State : c10::intrusive_ptr_target {
    uint64_t seed = c10::default_rng_seed_val;
    uint64_t step = 0;
  };

  Generator(c10::DeviceIndex index, c10::intrusive_ptr<State> state);
  Generator* clone_impl() const override;
  PhiloxState reserve_locked(uint64_t count);  // same as reserve(), except that the caller holds mutex_
  void check_not_capturing(const char* function) const;

  c10::intrusive_ptr<State> state_;  // shared by generators of graphsafe_get_state() and graphsafe_set_state()
};

// Returns the default generator of a device, which the first call makes. An index of -1 means the current device.
// Throws c10::Error if the index is out of range. Thread-safe. Valid until the process ends.
OPENREG_RUNTIME_API const at::Generator& default_generator(c10::DeviceIndex index = -1);
// Returns a new generator with PyTorch's default seed. An index of -1 means the current device. Throws c10::Error if
// the index is out of range. Thread-safe.
OPENREG_RUNTIME_API at::Generator make_generator(c10::DeviceIndex index = -1);
// Returns the implementation of `generator`, or of the device's default generator if `generator` has no value or is
// undefined. Throws c10::Error if it belongs to another device. Thread-safe. Valid as long as the generator.
OPENREG_RUNTIME_API Generator& generator_or_default(const std::optional<at::Generator>& generator,
                                                    c10::DeviceIndex index);

}  // namespace openreg::runtime
