// SPDX-License-Identifier: BSD-3-Clause
// How PyTorch switches devices and streams, and uses events.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <utility>

#include "queue.h"

namespace pocket {

namespace {

using Clock = std::chrono::steady_clock;

// A place in a queue, and the time when the queue reached it.
struct Event {
  Queue* queue;
  uint64_t ticket;
  std::shared_ptr<Clock::time_point> time;
};

// torch.Stream("pocket") means the current device.
c10::DeviceIndex index_of(c10::Device device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : current_device();
  check_device(index);
  return index;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::Device getDevice() const override { return {kType, current_device()}; }
  c10::Device exchangeDevice(c10::Device device) const override { return {kType, exchange_device(device.index())}; }
  void setDevice(c10::Device device) const override { exchange_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) {
      exchange_device(device.index());
    }
  }

  // Streams.
  c10::Stream getStream(c10::Device device) const override { return current_stream(index_of(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, {kType, index_of(device)});
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override { return new_stream(index_of(device)); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high_priority*/) const override {
    return new_stream(index_of(device));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    Queue& queue = queue_of(stream);
    return queue.is_done(queue.last());
  }
  void synchronizeStream(const c10::Stream& stream) const override { queue_of(stream).synchronize(); }
  void synchronizeDevice(c10::DeviceIndex index) const override { synchronize_device(index); }

  // Events. PyTorch keeps a void* for each, and these functions fill it.
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex index, c10::EventFlag /*flag*/) const override {
    TORCH_CHECK(index < 0 || index == stream.device_index(), "an event of ", c10::Device(kType, index),
                " cannot be recorded on a stream of ", stream.device());
    Queue& queue = queue_of(stream);
    auto time = std::make_shared<Clock::time_point>();
    const uint64_t ticket = queue.push([time] { *time = Clock::now(); });
    delete static_cast<Event*>(std::exchange(*event, new Event{&queue, ticket, time}));
  }
  void block(void* event, const c10::Stream& stream) const override {
    const Event recorded = *static_cast<Event*>(event);
    queue_of(stream).push([recorded] { recorded.queue->wait(recorded.ticket); });
  }
  bool queryEvent(void* event) const override {
    const auto* recorded = static_cast<Event*>(event);
    return recorded == nullptr || recorded->queue->is_done(recorded->ticket);
  }
  void synchronizeEvent(void* event) const override {
    if (const auto* recorded = static_cast<Event*>(event)) {
      recorded->queue->synchronize(recorded->ticket);
    }
  }
  double elapsedTime(void* start, void* end, c10::DeviceIndex /*index*/) const override {
    const auto *first = static_cast<Event*>(start), *last = static_cast<Event*>(end);
    TORCH_CHECK(queryEvent(start) && queryEvent(end), "elapsed_time: wait for both events first (Event.synchronize)");
    return std::chrono::duration<double, std::milli>(*last->time - *first->time).count();
  }
  void destroyEvent(void* event, c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace

}  // namespace pocket
