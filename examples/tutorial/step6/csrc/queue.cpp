// SPDX-License-Identifier: BSD-3-Clause
#include "queue.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace pocket {

namespace {

constexpr size_t kStreams = 4;  // per device, the default one included

// Never deleted: the process may end while the last tensors are freed.
std::vector<Queue*>& queues() {
  static auto* const all = [] {
    auto* made = new std::vector<Queue*>();
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
      for (size_t i = 0; i < kStreams; ++i) {
        made->push_back(new Queue(device));
      }
    }
    return made;
  }();
  return *all;
}

std::atomic<bool>& forked() {
  static std::atomic<bool> value{false};
  return value;
}

bool is_blocking() {
  static const char* const value = std::getenv("POCKET_LAUNCH_BLOCKING");
  return value != nullptr && std::string_view(value) == "1";
}

// Waits for all queues from an index on and below another one, also for those behind one that has an error.
void synchronize_queues(size_t begin, size_t end) {
  check_not_forked();
  std::exception_ptr error;
  for (size_t i = begin; i < end; ++i) {
    try {
      queues().at(i)->synchronize();
    } catch (...) {
      error = error ? error : std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

thread_local std::vector<c10::StreamId> current_streams(static_cast<size_t>(device_count()));

}  // namespace

// The argument of a kernel: the driver, which knows C alone, carries it to the device.
struct Queue::Task {
  Queue* queue;
  std::function<void()> function;
};

Queue::Queue(c10::DeviceIndex device) : stream_(pocketStreamCreate(device)) {}

uint64_t Queue::push(std::function<void()> task) {
  const uint64_t ticket = append(std::move(task));
  if (is_blocking()) {
    synchronize(ticket);
  }
  return ticket;
}

uint64_t Queue::append(std::function<void()> task) {
  check_not_forked();
  const auto kernel = [](void* argument) {
    const std::unique_ptr<Task> task(static_cast<Task*>(argument));
    task->queue->run(*task);
  };  // the task's captures are destroyed before the task counts as done
  return pocketLaunch(stream_, kernel, new Task{this, std::move(task)});
}

void Queue::run(Task& task) noexcept {
  ++begun_;  // the driver counts launches in the same way
  try {
    try {
      task.function();
    } catch (c10::Error& failed) {
      if (failed.context().empty()) {  // the exception of another queue has it already
        failed.add_context(
            "A kernel that was launched before has failed. With POCKET_LAUNCH_BLOCKING=1 in the environment "
            "each launch waits for its kernel, and the error comes from the line that launched it.");
      }
      throw;
    }
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) {
      error_ = std::current_exception();
      failed_ = begun_;
    }
  }
}

bool Queue::is_done(uint64_t ticket) {
  check_not_forked();
  return pocketStreamIsDone(stream_, ticket) != 0;
}

uint64_t Queue::last() {
  return pocketStreamLast(stream_);
}

void Queue::wait(uint64_t ticket) {
  check_not_forked();
  pocketStreamWait(stream_, ticket);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ && failed_ <= ticket) {
    std::rethrow_exception(error_);
  }
}

void Queue::synchronize(uint64_t ticket) {
  check_not_forked();
  pocketStreamWait(stream_, ticket);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ && failed_ <= ticket) {
    std::rethrow_exception(std::exchange(error_, nullptr));
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
  check_device(index);
  synchronize_queues(index * kStreams, (index + 1) * kStreams);
}

void synchronize_all() {
  synchronize_queues(0, device_count() * kStreams);
}

void release_later(std::shared_ptr<void> object) noexcept {
  for (Queue* queue : queues()) {
    if (!queue->is_done(queue->last())) {
      queue->append([object] {});  // the last queue to drop its copy destroys the object
    }
  }
}

void mark_forked() {
  forked() = true;
}

bool is_forked() {
  return forked();
}

void check_not_forked() {
  TORCH_CHECK(!forked(), "pocket cannot be used in a forked process; start processes with ",
              "torch.multiprocessing.get_context('spawn')");
}

}  // namespace pocket
