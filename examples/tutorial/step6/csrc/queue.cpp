// SPDX-License-Identifier: BSD-3-Clause
#include "queue.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace pocket {

namespace {

constexpr size_t kStreams = 4;  // per device, the default one included

// Neither queues nor their threads ever end: the process may end while the last tensors are freed.
std::vector<Queue*>& queues() {
  static auto* const all = [] {
    auto* made = new std::vector<Queue*>();
    for (size_t i = 0; i < kDeviceCount * kStreams; ++i) {
      made->push_back(new Queue());
    }
    return made;
  }();
  return *all;
}

std::atomic<bool>& forked() {
  static std::atomic<bool> value{false};
  return value;
}

void check_not_forked() {
  TORCH_CHECK(!forked(), "pocket cannot be used in a forked process; start processes with ",
              "torch.multiprocessing.get_context('spawn')");
}

thread_local std::array<c10::StreamId, kDeviceCount> current_streams{};

}  // namespace

Queue::Queue() {
  std::thread([this] { work(); }).detach();
}

uint64_t Queue::push(std::function<void()> task) {
  check_not_forked();
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return ++pushed_;
}

void Queue::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;  // what the task owned is gone before the task counts as done
    lock.lock();
    error_ = error_ ? error_ : error;
    ++done_;
    changed_.notify_all();
  }
}

bool Queue::is_done(uint64_t ticket) {
  check_not_forked();
  const std::lock_guard<std::mutex> lock(mutex_);
  return done_ >= ticket;
}

void Queue::wait(uint64_t ticket) {
  check_not_forked();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this, ticket] { return done_ >= ticket; });
}

uint64_t Queue::last() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pushed_;
}

void Queue::synchronize() {
  check_not_forked();
  wait(last());
  std::unique_lock<std::mutex> lock(mutex_);
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  if (!error) {
    return;
  }
  try {
    std::rethrow_exception(error);
  } catch (c10::Error& failed) {
    failed.add_context(
        "A kernel that was launched before has failed. With POCKET_LAUNCH_BLOCKING=1 in the environment "
        "each launch waits for its kernel, and the error comes from the line that launched it.");
    throw;
  }
}

Queue& queue_of(const c10::Stream& stream) {
  check_not_forked();
  return *queues().at(stream.device_index() * kStreams + static_cast<size_t>(stream.id()));
}

c10::Stream new_stream(c10::DeviceIndex index) {
  static std::atomic<size_t> count{0};
  const auto id = static_cast<c10::StreamId>(1 + count++ % (kStreams - 1));
  return c10::Stream(c10::Stream::UNSAFE, {kType, index}, id);
}

c10::Stream current_stream(c10::DeviceIndex index) {
  return c10::Stream(c10::Stream::UNSAFE, {kType, index}, current_streams.at(index));
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  const c10::Stream before = current_stream(stream.device_index());
  current_streams.at(stream.device_index()) = stream.id();
  return before;
}

void synchronize_device(c10::DeviceIndex index) {
  check_not_forked();
  check_device(index);
  for (size_t i = 0; i < kStreams; ++i) {
    queues().at(index * kStreams + i)->synchronize();
  }
}

void synchronize_all() {
  for (c10::DeviceIndex index = 0; index < kDeviceCount; ++index) {
    synchronize_device(index);
  }
}

void release_later(std::shared_ptr<void> object) noexcept {
  for (Queue* queue : queues()) {
    if (!queue->is_done(queue->last())) {
      queue->push([object] {});  // the last queue to drop its copy destroys the object
    }
  }
}

void mark_forked() {
  forked() = true;
}

bool is_forked() {
  return forked();
}

}  // namespace pocket
