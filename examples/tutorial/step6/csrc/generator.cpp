// SPDX-License-Identifier: BSD-3-Clause
#include "generator.h"

#include <ATen/Utils.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <vector>

namespace pocket {

GeneratorImpl::GeneratorImpl(c10::DeviceIndex index)
    : c10::GeneratorImpl({kType, index}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

uint64_t GeneratorImpl::next_seed() {
  // Neighboring counts must not give related numbers. This mixes all bits of both (the finalizer of splitmix64).
  uint64_t mixed = state_.seed + 0x9E3779B97F4A7C15 * ++state_.draws;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

uint64_t GeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return state_.seed;
}

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.is_contiguous() &&
                  state.numel() == sizeof(RandomState),
              "the state of a pocket generator is a contiguous CPU tensor of ", sizeof(RandomState), " bytes (uint8)");
  std::memcpy(&state_, state.data(), sizeof(RandomState));
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  const at::Tensor state = at::detail::empty_cpu({sizeof(RandomState)}, c10::kByte);
  std::memcpy(state.mutable_data_ptr(), &state_, sizeof(RandomState));
  return state.getIntrusivePtr();
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  auto* copy = new GeneratorImpl(device().index());
  copy->state_ = state_;
  return copy;
}

at::Generator make_generator(c10::DeviceIndex index) {
  index = index < 0 ? current_device() : index;
  check_device(index);
  return at::make_generator<GeneratorImpl>(index);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* const generators = [] {
    auto* made = new std::vector<at::Generator>();
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
      made->push_back(make_generator(device));
    }
    return made;
  }();
  index = index < 0 ? current_device() : index;
  check_device(index);
  return generators->at(index);
}

}  // namespace pocket
