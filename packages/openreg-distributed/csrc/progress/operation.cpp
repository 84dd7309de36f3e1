// SPDX-License-Identifier: BSD-3-Clause
#include "operation.h"

#include <exception>
#include <utility>

namespace openreg::distributed {

std::string Description::call() const {
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

std::string Description::text() const {
  return call() + " on " + *group;
}

Ticket::~Ticket() {
  // Fails only where the process is exiting or forked, and then the driver has let go of it.
  orEventDestroy(ready_);
}

std::string Ticket::wait_ready() const {
  if (orEventSynchronize(ready_) == orSuccess) {
    return {};
  }
  return orGetLastErrorMessage();
}

void Ticket::signal() const noexcept {
  // Refused where the semaphore has failed before, or the process is exiting: then nothing waits for it.
  orSemaphoreSignal(semaphore_, value_);
}

void Ticket::fail(const std::string& reason) const noexcept {
  orSemaphoreFail(semaphore_, orErrorUnknown, reason.c_str());  // the first reason stays
}

Operation::Operation(Description description, Terms terms, std::shared_ptr<Flight> flight,
                     std::unique_ptr<Ticket> ticket, Post post, std::shared_ptr<void> held)
    : description_(std::move(description)),
      terms_(std::move(terms)),
      flight_(std::move(flight)),
      ticket_(std::move(ticket)),
      post_(std::move(post)),
      held_(std::move(held)) {}

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

bool Operation::settle(Outcome outcome, const std::string& reason) noexcept {
  if (!decide(outcome, reason)) {
    return false;
  }
  tell_device();
  return true;
}

bool Operation::decide(Outcome outcome, const std::string& reason) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (outcome_ != Outcome::kPending) {
    return false;
  }
  outcome_ = outcome;
  flight_->succeeded = outcome == Outcome::kSuccess;
  flight_->ended = now_nanoseconds();
  reason_ = outcome == Outcome::kSuccess ? std::string() : reason;
  return true;
}

void Operation::tell_device() noexcept {
  decided_.notify_all();
  if (outcome() == Outcome::kFailed) {
    ticket_->fail(reason());
  } else {
    ticket_->signal();
  }
}

Outcome Operation::outcome() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return outcome_;
}

std::string Operation::reason() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

bool Operation::wait(std::chrono::milliseconds limit) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto decided = [&] { return outcome_ != Outcome::kPending; };
  if (limit.count() == 0) {
    decided_.wait(lock, decided);
    return true;
  }
  return decided_.wait_for(lock, limit, decided);
}

void Operation::set_cancel(std::function<void()> cancel) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!cancelled_) {
      cancel_ = std::move(cancel);
      return;
    }
  }
  cancel();  // it failed before the transport had it
}

void Operation::cancel() noexcept {
  std::function<void()> cancel;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    cancel = std::exchange(cancel_, nullptr);
  }
  if (cancel) {
    try {
      cancel();
    } catch (const std::exception&) {
      // The transport then lets go when its own time is up.
    }
  }
}

std::shared_ptr<void> Operation::take_held() {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancel_ = nullptr;
  post_ = nullptr;
  return std::exchange(held_, nullptr);
}

}  // namespace openreg::distributed
