// SPDX-License-Identifier: BSD-3-Clause
// Implements c10::GeneratorImpl.
#include "openreg/runtime/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <cstring>
#include <limits>
#include <mutex>

#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"
#include "random/graph_random_state.h"

namespace openreg::runtime {

namespace {

constexpr int64_t kStateSize = 2 * sizeof(uint64_t);
constexpr uint64_t kNumbersPerStep = 4;  // numbers of 32 bits in the 128 bits of one value of the counter

// Throws ValueError unless an offset is the place of a step.
void check_offset(const char* function, uint64_t offset) {
  TORCH_CHECK_VALUE(offset % kNumbersPerStep == 0, "torch.Generator.", function,
                    "(): the offset of an openreg generator must be a multiple of ", kNumbersPerStep,
                    ", as get_offset() returns it, but got ", offset);
}

#if OPENREG_TORCH_HAS_PHILOX_STATE
// Makes a CPU tensor of one int64 with these bits.
at::Tensor host_number(uint64_t bits) {
  at::Tensor tensor = at::detail::empty_cpu({1}, at::kLong);
  std::memcpy(tensor.data_ptr(), &bits, sizeof(bits));
  return tensor;
}

at::Tensor device_number(c10::Device device) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic({1}, &device_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::kLong, std::nullopt);
}
#endif

}  // namespace

Generator::Generator(c10::DeviceIndex index) : Generator(index, c10::make_intrusive<State>()) {}

Generator::Generator(c10::DeviceIndex index, c10::intrusive_ptr<State> state)
    : c10::GeneratorImpl(c10::Device(kDeviceType, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      state_(std::move(state)) {}

PhiloxState Generator::reserve(uint64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reserve_locked(count);
}

PhiloxState Generator::reserve_locked(uint64_t count) {
  if (const uint64_t capture = capture_id(current_stream(device().index())); capture != 0) {
    return find_capture_random(capture)->reserve(*this, count);
  }
  const PhiloxState start(state_->seed, state_->step);
  state_->step += count;
  return start;
}

// Throws c10::Error if the current stream is capturing. A replay starts at the generator's state at that time, so a
// state that is set during the capture would have no effect.
void Generator::check_not_capturing(const char* function) const {
  TORCH_CHECK(!is_initialized() || !is_capturing(current_stream(device().index())), "torch.Generator.", function,
              "(): the generator of ", device(),
              " cannot be set or read while the current stream is capturing; do it before the capture or a replay");
}

void Generator::set_current_seed(uint64_t seed) {
  check_not_capturing("manual_seed");
  state_->seed = seed;
  state_->step = 0;
}

uint64_t Generator::current_seed() const {
  return state_->seed;
}

uint64_t Generator::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom();
  set_current_seed(random);
  return random;
}

void Generator::set_offset(uint64_t offset) {
  check_not_capturing("set_offset");
  check_offset("set_offset", offset);
  state_->step = offset / kNumbersPerStep;
}

uint64_t Generator::get_offset() const {
  check_not_capturing("get_offset");
  return state_->step * kNumbersPerStep;
}

void Generator::set_state(const c10::TensorImpl& new_state) {
  check_not_capturing("set_state");
  TORCH_CHECK_TYPE(new_state.device().is_cpu() && new_state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                       new_state.is_contiguous(),
                   "torch.Generator.set_state(): expected a contiguous CPU tensor of dtype uint8, as get_state() "
                   "returns it for a generator of an openreg device");
  TORCH_CHECK_VALUE(new_state.numel() == kStateSize, "torch.Generator.set_state(): expected the ", kStateSize,
                    " bytes of an openreg generator (seed and offset), but got ", new_state.numel(),
                    "; pass a state of a generator on an openreg device");
  std::array<uint64_t, 2> fields;
  std::memcpy(fields.data(), new_state.data(), kStateSize);
  const auto [seed, offset] = fields;
  check_offset("set_state", offset);
  state_->seed = seed;
  state_->step = offset / kNumbersPerStep;
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  check_not_capturing("get_state");
  at::Tensor state = at::detail::empty_cpu({kStateSize}, at::kByte);
  const std::array<uint64_t, 2> fields{state_->seed, state_->step * kNumbersPerStep};
  std::memcpy(state.data_ptr(), fields.data(), kStateSize);
  return state.getIntrusivePtr();
}

void Generator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& new_state) {
  const auto* other = dynamic_cast<Generator*>(new_state.get());
  TORCH_CHECK_TYPE(other != nullptr,
                   "torch.Generator.graphsafe_set_state(): expected a generator of an openreg device; make it with "
                   "torch.Generator('openreg')");
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> Generator::graphsafe_get_state() const {
  return c10::intrusive_ptr<Generator>::reclaim(new Generator(device().index(), state_));
}

#if OPENREG_TORCH_HAS_PHILOX_STATE
void Generator::philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset, at::Tensor& intragraph_offset) {
  const c10::Stream stream = current_stream(device().index());
  const PhiloxState start = reserve_locked(increment / kNumbersPerStep + (increment % kNumbersPerStep != 0));
  intragraph_offset = host_number(0);
  if (!is_capturing(stream)) {
    seed = host_number(start.seed());
    offset = host_number(start.offset() * kNumbersPerStep);
    return;
  }
  seed = device_number(device());
  offset = device_number(device());
  Operands operands;
  operands.add(seed, orAccessWrite);
  operands.add(offset, orAccessWrite);
  const auto write = [start, seed_at = static_cast<uint64_t*>(kernel_view(seed.data_ptr())),
                      offset_at = static_cast<uint64_t*>(kernel_view(offset.data_ptr()))] {
    *seed_at = start.seed();
    *offset_at = start.offset() * kNumbersPerStep;
  };
  launch("torch.Generator.philox_state", stream, write, &operands);
}
#endif

c10::DeviceType Generator::device_type() {
  return kDeviceType;
}

Generator* Generator::clone_impl() const {
  auto copy = c10::make_intrusive<State>();
  copy->seed = state_->seed;
  copy->step = state_->step;
  return new Generator(device().index(), std::move(copy));
}

at::Generator make_generator(c10::DeviceIndex index) {
  if (index == -1) {
    index = current_device();
  }
  check_device_index(index);
  return at::make_generator<Generator>(index);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  struct DefaultGenerator {
    std::once_flag made;
    at::Generator generator;
  };
  static auto* const slots = new std::array<DefaultGenerator, OPENREG_MAX_DEVICES>();
  if (index == -1) {
    index = current_device();
  }
  check_device_index(index);
  DefaultGenerator& slot = (*slots)[static_cast<size_t>(index)];
  std::call_once(slot.made, [&] { slot.generator = make_generator(index); });
  return slot.generator;
}

Generator& generator_or_default(const std::optional<at::Generator>& generator, c10::DeviceIndex index) {
  const bool given = generator.has_value() && generator->defined();
  const at::Generator& chosen = given ? *generator : default_generator(index);
  TORCH_CHECK(chosen.device().type() == kDeviceType && chosen.device().index() == index,
              "Expected a 'openreg:", static_cast<int>(index), "' generator but found one of '", chosen.device(),
              "'; make it with torch.Generator('openreg:", static_cast<int>(index), "')");
  return *static_cast<Generator*>(chosen.unsafeGetGeneratorImpl());
}

}  // namespace openreg::runtime
