// SPDX-License-Identifier: BSD-3-Clause
#include "progress/operation.h"

#include <exception>
#include <utility>

namespace openreg::distributed {

std::string OperationDescription::call() const {
  std::string text = name;
  text += " number " + std::to_string(sequence);
  if (tensors != 0) {
    text += " (";
    text += dtype;
    text += " [";
    for (size_t i = 0; i < sizes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    }
    text += tensors == 1 ? "]" : "] and " + std::to_string(tensors - 1) + " more";
    text += ", " + std::to_string(bytes) + " bytes";
    if (reduction != nullptr) {
      text += ", ";
      text += reduction;
    }
    text += ")";
  }
  if (root >= 0) {
    text += " with root " + std::to_string(root);
  }
  if (peer >= 0) {
    text += " with rank " + std::to_string(peer);
  }
  return text;
}

std::string OperationDescription::text() const {
  return call() + " on " + *group;
}

StreamWait::~StreamWait() {
  orEventDestroy(ready_);  // Succeeds also in a forked child and while the process exits, where it does nothing.
}

std::string StreamWait::wait_ready() const {
  if (orEventSynchronize(ready_) == orSuccess) {
    return {};
  }
  return orGetLastErrorMessage();
}

void StreamWait::signal() const noexcept {
  // Fails if a later operation has signaled a greater value, if the semaphore has failed, or if the process is exiting.
  // Then nothing waits for this value any more.
  orSemaphoreSignal(semaphore_, value_);
}

void StreamWait::fail(const std::string& reason) const noexcept {
  orSemaphoreFail(semaphore_, orErrorUnknown, reason.c_str());  // Keeps the first reason.
}

Operation::Operation(OperationDescription description, OperationSignature signature,
                     std::shared_ptr<FlightRecord> flight, Post post, std::shared_ptr<void> retained)
    : description_(std::move(description)),
      signature_(std::move(signature)),
      flight_(std::move(flight)),
      post_(std::move(post)),
      retained_(std::move(retained)) {}

void Operation::post(const std::shared_ptr<Operation>& self) {
  Post post;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    post = std::exchange(post_, nullptr);
  }
  flight_->started = now_nanoseconds();
  post(self);
}

bool Operation::is_posted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return post_ == nullptr;
}

bool Operation::complete(OperationStatus status, const std::string& reason) noexcept {
  if (!decide(status, reason)) {
    return false;
  }
  signal_device();
  return true;
}

bool Operation::decide(OperationStatus status, const std::string& reason) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (status_ != OperationStatus::kPending) {
    return false;
  }
  status_ = status;
  flight_->succeeded = status == OperationStatus::kSuccess;
  flight_->ended = now_nanoseconds();
  reason_ = status == OperationStatus::kSuccess ? std::string() : reason;
  return true;
}

void Operation::signal_device() noexcept {
  decided_.notify_all();
  if (status() == OperationStatus::kFailed) {
    stream_wait_->fail(reason());
  } else {
    stream_wait_->signal();
  }
}

OperationStatus Operation::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

std::string Operation::reason() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

bool Operation::wait(std::chrono::milliseconds limit) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto decided = [&] { return status_ != OperationStatus::kPending; };
  if (limit.count() == 0) {
    decided_.wait(lock, decided);
    return true;
  }
  return decided_.wait_for(lock, limit, decided);
}

void Operation::set_cancel(std::function<void()> cancel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancel_ = std::move(cancel);
  if (cancelled_) {  // The operation failed before the transport had it.
    call_cancel();
  }
}

void Operation::cancel() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = true;
  call_cancel();
}

void Operation::call_cancel() noexcept {
  if (cancel_) {
    try {
      cancel_();
    } catch (const std::exception&) {
      // The transport releases the memory at its own timeout.
    }
    cancel_ = nullptr;
  }
}

std::shared_ptr<void> Operation::take_retained() {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancel_ = nullptr;
  post_ = nullptr;
  return std::exchange(retained_, nullptr);
}

}  // namespace openreg::distributed
