// SPDX-License-Identifier: BSD-3-Clause
#include "progress.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace openreg::distributed {

namespace {

constexpr const char* kAdvice =
    "; end the group with torch.distributed.destroy_process_group(), and torch.openreg.reset_device() makes the device "
    "usable again";

}  // namespace

std::shared_ptr<Progress> Progress::create() {
  return std::shared_ptr<Progress>(new Progress());
}

void Progress::submit(const std::shared_ptr<Operation>& operation, int channel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  outstanding_.push_back(operation);
  std::unique_ptr<Channel>& target = channels_[channel];
  if (target == nullptr) {
    // The threads share the ownership of this object through their channel's function.
    target = std::make_unique<Channel>(
        [self = shared_from_this()](const std::shared_ptr<Operation>& next) { self->begin(next); });
  }
  target->push(operation);
}

void Progress::begin(const std::shared_ptr<Operation>& operation) {
  std::string problem = failure();
  if (problem.empty()) {
    problem = operation->wait_ready();
    if (!problem.empty()) {
      problem = "the work before it failed: " + problem;
    } else {
      problem = failure();  // which may have come meanwhile
    }
  }
  if (problem.empty()) {
    limit(operation, operation->timeout());
    try {
      operation->post(operation);
      return;
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  transport_done(operation, problem);
}

void Progress::limit(const std::shared_ptr<Operation>& operation, std::chrono::milliseconds timeout) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    deadlines_.emplace(Clock::now() + timeout, Deadline{operation, timeout});
    if (!watching_) {
      watching_ = true;
      std::thread([self = shared_from_this()] { self->watch(); }).detach();
    }
  }
  changed_.notify_all();
}

void Progress::transport_done(const std::shared_ptr<Operation>& operation, const std::string& error) {
  if (error.empty()) {
    operation->settle(Outcome::kSuccess, {});
  } else if (operation->outcome() == Outcome::kPending) {
    fail(operation, error);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(outstanding_, operation);
    returned_.push_back(operation->take_held());
  }
  changed_.notify_all();
}

void Progress::fail(const std::shared_ptr<Operation>& culprit, const std::string& cause) {
  const std::string text = culprit->description().text() + ": " + cause;
  if (!culprit->decide(Outcome::kFailed, "occl: " + text + kAdvice)) {
    return;
  }
  const std::string later = "occl: the group has failed: " + text + kAdvice;
  refuse(later);  // before the device fails: whoever hears of that finds the group closed
  culprit->tell_device();
  end(Outcome::kFailed, "occl: ended because " + text + kAdvice, later);
}

void Progress::abort(const std::string& reason) {
  end(Outcome::kAborted, reason, reason);
}

void Progress::refuse(const std::string& later) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.empty()) {
    failure_ = later;
  }
}

void Progress::end(Outcome outcome, const std::string& reason, const std::string& later) {
  refuse(later);
  std::vector<std::shared_ptr<Operation>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = outstanding_;
  }
  changed_.notify_all();
  for (const auto& operation : all) {
    operation->settle(outcome, reason);
    operation->cancel();
  }
}

void Progress::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_ || !outstanding_.empty()) {
    if (deadlines_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = deadlines_.begin();
    const std::shared_ptr<Operation> operation = first->second.operation.lock();
    if (operation == nullptr || operation->outcome() != Outcome::kPending) {
      deadlines_.erase(first);
      continue;
    }
    if (first->first > Clock::now()) {
      changed_.wait_until(lock, first->first);
      continue;
    }
    const std::string limit = std::to_string(first->second.timeout.count());
    deadlines_.erase(first);
    lock.unlock();
    fail(operation, "no answer from the other ranks within its timeout of " + limit +
                        " ms; look for a rank that has ended, hangs, or did not make this call");
    lock.lock();
  }
}

std::string Progress::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

size_t Progress::outstanding() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return outstanding_.size();
}

void Progress::wait_idle() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return outstanding_.empty(); });
}

void Progress::drop_returned() {
  std::vector<std::shared_ptr<void>> returned;
  const std::lock_guard<std::mutex> lock(mutex_);
  returned.swap(returned_);
}

void Progress::close() {
  std::map<int, std::unique_ptr<Channel>> channels;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    channels.swap(channels_);
  }
  changed_.notify_all();
}

}  // namespace openreg::distributed
