// SPDX-License-Identifier: BSD-3-Clause
// Random numbers: a seed and a count of draws per device.
#pragma once

#include <ATen/core/Generator.h>

#include "device.h"

namespace pocket {

struct RandomState {
  uint64_t seed;
  uint64_t draws;
};

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex index);
  static c10::DeviceType device_type() { return kType; }

  // Returns the seed of one operator's numbers. The launch takes it, so the numbers do not depend on when the kernel
  // runs.
  uint64_t next_seed();

  void set_current_seed(uint64_t seed) override { state_ = {seed, 0}; }
  uint64_t current_seed() const override { return state_.seed; }
  uint64_t seed() override;
  void set_offset(uint64_t offset) override { state_.draws = offset; }
  uint64_t get_offset() const override { return state_.draws; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

 private:
  GeneratorImpl* clone_impl() const override;

  RandomState state_{c10::detail::getNonDeterministicRandom(), 0};
};

at::Generator make_generator(c10::DeviceIndex index);
const at::Generator& default_generator(c10::DeviceIndex index);

}  // namespace pocket
