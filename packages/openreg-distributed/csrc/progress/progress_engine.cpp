// SPDX-License-Identifier: BSD-3-Clause
#include "progress/progress_engine.h"

#include <exception>
#include <utility>

#include "progress/platform.h"
#include "progress/threads.h"

namespace openreg::distributed {

namespace {

constexpr const char* kAdvice =
    "; end the group with torch.distributed.destroy_process_group(), and torch.openreg.reset_device() makes the device "
    "usable again";
constexpr const char* kGone = " has ended, or closed its connections";
constexpr const char* kLostByFault = "its messages were lost, by an injected fault";

// The time in which a peer reports why it has closed its connections.
constexpr std::chrono::milliseconds kPatience{200};
// The delay of an operation with the injected fault kDelayed.
constexpr std::chrono::seconds kDelay{1};

// The progress engines of all groups of this process.
struct Groups {
  std::mutex mutex;
  std::vector<std::weak_ptr<ProgressEngine>> all;
};

// Returns the one instance. It is never destroyed, because threads may outlive the destructors of statics.
Groups& groups() {
  static auto* const groups = new Groups;
  return *groups;
}

}  // namespace

ProgressEngine::ChannelUse::ChannelUse(ProgressEngine& progress) : progress_(progress) {
  const std::lock_guard<std::mutex> lock(progress_.mutex_);
  ++progress_.users_;
}

ProgressEngine::ChannelUse::~ChannelUse() {
  const std::lock_guard<std::mutex> lock(progress_.mutex_);
  if (--progress_.users_ == 0) {
    progress_.idle_.notify_all();
  }
}

ProgressEngine::ProgressEngine(int rank, int size, std::shared_ptr<ControlChannel> control_channel,
                               std::function<void()> on_failure)
    : rank_(rank),
      size_(size),
      control_channel_(std::move(control_channel)),
      on_failure_(std::move(on_failure)),
      matcher_(rank, size) {}

std::shared_ptr<ProgressEngine> ProgressEngine::create(int rank, int size,
                                                       std::shared_ptr<ControlChannel> control_channel,
                                                       std::function<void()> on_failure) {
  auto progress = std::shared_ptr<ProgressEngine>(
      new ProgressEngine(rank, size, std::move(control_channel), std::move(on_failure)));
  const std::lock_guard<std::mutex> lock(groups().mutex);
  std::erase_if(groups().all, [](const std::weak_ptr<ProgressEngine>& group) { return group.expired(); });
  groups().all.push_back(progress);
  return progress;
}

bool ProgressEngine::end_all(std::chrono::milliseconds limit) {
  std::vector<std::weak_ptr<ProgressEngine>> all;
  {
    const std::lock_guard<std::mutex> lock(groups().mutex);
    all.swap(groups().all);
  }
  for (const std::weak_ptr<ProgressEngine>& group : all) {
    if (const std::shared_ptr<ProgressEngine> progress = group.lock()) {
      progress->leave();
    }
  }
  return Threads::instance().join(limit);
}

void ProgressEngine::submit(const OperationPtr& operation, int queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // What may throw comes before the operation is stored.
  start_readers();
  start_watchdog();
  std::unique_ptr<SubmissionQueue>& target = queues_[queue];
  if (target == nullptr) {
    // The queue's thread shares the ownership of this object.
    target = std::make_unique<SubmissionQueue>(
        [self = shared_from_this()](const SubmissionQueue::Batch& batch) { self->consume(batch); });
  }
  std::list<OperationPtr> entry{operation};
  operation->watchdog_entry().place = entry.begin();  // Stays valid when the element moves to the other list.
  target->push(operation);
  outstanding_.splice(outstanding_.end(), entry);
}

void ProgressEngine::consume(const SubmissionQueue::Batch& batch) {
  const ChannelUse use(*this);
  announce(batch);
  for (const OperationPtr& operation : batch) {
    std::string problem = failure();
    if (problem.empty()) {
      problem = operation->wait_ready();
      if (!problem.empty()) {
        problem = "the work before it failed: " + problem;
      }
    }
    if (!problem.empty()) {
      finish(operation, problem);
      continue;
    }
    limit(operation, operation->timeout());
    if (operation->fault() == CollectiveFault::kKilled) {
      platform::kill_this_process();
    }
    if (operation->fault() == CollectiveFault::kDelayed) {
      operation->wait(kDelay);  // Returns early if the operation fails.
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      silent_ = silent_ || operation->fault() == CollectiveFault::kDropped;
      if (silent_) {
        operation->watchdog_entry().is_silenced = true;
        matcher_.suppress(operation);
      } else {
        matcher_.ready(operation);
      }
    }
    begin_ready();
  }
}

void ProgressEngine::announce(const SubmissionQueue::Batch& batch) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (silent_ || !failure_.empty()) {
      return;
    }
  }
  std::vector<ControlMessage> messages;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) {
      continue;
    }
    messages.clear();
    for (const OperationPtr& operation : batch) {
      if (operation->fault() == CollectiveFault::kDropped) {
        break;
      }
      ControlMessage message;
      if (OperationMatcher::make_control_message(*operation, peer, message)) {
        messages.push_back(std::move(message));
      }
    }
    try {
      for (const std::string& encoded : encode(messages)) {
        control_channel_->send(peer, encoded);
      }
    } catch (const std::exception&) {
      on_peer_lost(peer, rank_named(peer) + kGone);
    }
  }
}

void ProgressEngine::begin_ready() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (beginning_) {
    return;
  }
  beginning_ = true;
  for (;;) {
    if (!failure_.empty()) {
      const std::string reason = failure_;
      const std::vector<OperationPtr> left = matcher_.drain();
      if (left.empty()) {
        break;
      }
      lock.unlock();
      for (const OperationPtr& operation : left) {
        finish(operation, reason);
      }
    } else {
      const OperationMatcher::Next next = matcher_.next();
      if (next.operation == nullptr) {
        break;
      }
      lock.unlock();
      begin(next.operation, next.problem);
    }
    lock.lock();
  }
  beginning_ = false;
}

void ProgressEngine::begin(const OperationPtr& operation, const std::string& problem) {
  if (!problem.empty()) {
    finish(operation, problem);
    return;
  }
  try {
    operation->post(operation);
  } catch (const std::exception& error) {
    finish(operation, error.what());
  }
}

void ProgressEngine::limit(const OperationPtr& operation, std::chrono::milliseconds timeout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const SteadyClock::time_point deadline = SteadyClock::now() + timeout;
  if (deadline >= operation->watchdog_entry().deadline) {
    return;
  }
  operation->watchdog_entry().deadline = deadline;
  operation->watchdog_entry().timeout = timeout;
  if (deadline < next_look_) {
    watch_.notify_one();
  }
}

void ProgressEngine::transport_done(const OperationPtr& operation, const std::string& error) {
  finish(operation, error.empty() ? error : explained(error));
}

// An error of the transport is nearly always a closed connection, and a peer is about to report the cause of that.
std::string ProgressEngine::explained(const std::string& error) {
  std::unique_lock<std::mutex> lock(mutex_);
  failure_reported_.wait_for(lock, kPatience, [&] { return !failure_.empty() || !matcher_.lost().empty(); });
  const std::string lost = matcher_.lost();
  return lost.empty() ? error : lost + ": " + error;
}

void ProgressEngine::finish(const OperationPtr& operation, const std::string& problem) {
  if (problem.empty()) {
    operation->complete(OperationStatus::kSuccess, {});
  } else {
    fail(operation, problem);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  outstanding_.erase(operation->watchdog_entry().place);
  returned_.push_back(operation->take_retained());
  if (outstanding_.empty()) {
    idle_.notify_all();
    if (closed_) {
      watch_.notify_one();
    }
  }
}

void ProgressEngine::fail(const OperationPtr& culprit, const std::string& cause) {
  const ChannelUse use(*this);
  if (culprit->status() != OperationStatus::kPending) {
    return;
  }
  const std::string text = culprit->description().text() + ": " + cause;
  // The group rejects operations before the device fails, so that a caller that sees the error finds it so.
  if (refuse(OperationStatus::kFailed, "the group has failed: " + text + kAdvice)) {
    culprit->complete(OperationStatus::kFailed, "occl: " + text + kAdvice);
    end("ended because " + text + kAdvice, true);
    notify_peers(ControlMessage::Kind::kFailure, text);
    on_failure_();
  } else {
    fail_after_close(culprit, failure());
  }
}

void ProgressEngine::abort(const std::string& reason) {
  const ChannelUse use(*this);
  if (refuse(OperationStatus::kAborted, reason)) {
    end(reason, true);
    notify_peers(ControlMessage::Kind::kAbort, reason);
  }
}

void ProgressEngine::leave() {
  const ChannelUse use(*this);
  close();
  wait_threads_.close();
  const std::string reason = "the process is exiting; call torch.distributed.destroy_process_group() before it exits";
  if (refuse(OperationStatus::kAborted, reason)) {
    end(reason, true);
  }
  if (control_channel_ != nullptr) {
    control_channel_->close(outstanding() != 0 ? TransportEnd::kSoon : TransportEnd::kNone);
  }
}

bool ProgressEngine::refuse(OperationStatus status, const std::string& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) {
    return false;
  }
  failure_ = reason;
  closed_status_ = status;
  failure_reported_.notify_all();
  return true;
}

void ProgressEngine::fail_after_close(const OperationPtr& operation, const std::string& reason) {
  OperationStatus status;
  std::string text = "occl: " + operation->description().text() + ": ";
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    status = closed_status_;
    if (operation->watchdog_entry().is_silenced) {  // A peer may have timed out before this rank.
      text += std::string(kLostByFault) + "; ";
    }
  }
  operation->complete(status, text + reason);
}

void ProgressEngine::end(const std::string& reason, bool also_posted) {
  std::vector<OperationPtr> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.assign(outstanding_.begin(), outstanding_.end());
  }
  for (const OperationPtr& operation : all) {
    if (also_posted || !operation->is_posted()) {
      fail_after_close(operation, reason);
      operation->cancel();
    }
  }
  begin_ready();  // Completes what has not started.
}

void ProgressEngine::notify_peers(ControlMessage::Kind kind, const std::string& text) {
  if (control_channel_ == nullptr) {
    return;
  }
  ControlMessage last;
  last.kind = kind;
  last.text = text;
  const std::vector<std::string> messages = encode({last});
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) {
      control_channel_->try_send(peer, messages.front());
    }
  }
  control_channel_->close(TransportEnd::kAfterPeers);
}

void ProgressEngine::start_readers() {
  for (; next_reader_ < size_; ++next_reader_) {
    if (next_reader_ != rank_) {
      Threads::instance().start([self = shared_from_this(), peer = next_reader_] {
        orThreadSetProgress(1);
        self->read(peer);
      });
      ++users_;  // The thread subtracts it under the mutex, so not before.
    }
  }
}

void ProgressEngine::start_watchdog() {
  if (!watching_) {
    Threads::instance().start([self = shared_from_this()] { self->watch(); });
    watching_ = true;
  }
}

void ProgressEngine::read(int peer) {
  try {
    while (const std::optional<std::string> message = control_channel_->receive(peer)) {
      on_message(peer, *message);
    }
  } catch (const std::exception&) {
    on_peer_lost(peer, rank_named(peer) + kGone);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--users_ == 0) {
    idle_.notify_all();
  }
}

void ProgressEngine::on_message(int peer, std::string_view encoded) {
  std::vector<ControlMessage> messages;
  std::string problem;
  if (!decode(encoded, messages)) {
    problem =
        rank_named(peer) +
        " sent a message that this rank cannot read; install the same release of openreg-distributed for all ranks";
  }
  OperationStatus status = OperationStatus::kFailed;
  for (ControlMessage& one : messages) {
    if (one.kind == ControlMessage::Kind::kFailure) {
      problem = rank_named(peer) + " has failed: " + one.text;
    } else if (one.kind == ControlMessage::Kind::kAbort) {
      problem = rank_named(peer) + " has aborted the group";
      status = OperationStatus::kAborted;
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      problem = matcher_.on_message(peer, std::move(one));
    }
    if (!problem.empty()) {
      break;
    }
  }
  if (problem.empty()) {
    begin_ready();
  } else if (refuse(status, "the group has failed: " + problem + kAdvice)) {
    // Operations that the transport has may still succeed, because the peer may have completed them. Otherwise the
    // peer's connections, which close a little later, end them.
    end("ended because " + problem + kAdvice, false);
    control_channel_->close(TransportEnd::kSoon);
    if (status == OperationStatus::kFailed) {
      on_failure_();
    }
  }
}

void ProgressEngine::on_peer_lost(int peer, const std::string& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    matcher_.on_peer_lost(peer, reason);
    failure_reported_.notify_all();
  }
  begin_ready();
}

void ProgressEngine::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_ || !outstanding_.empty()) {
    auto first = outstanding_.end();
    next_look_ = SteadyClock::time_point::max();
    for (auto place = outstanding_.begin(); place != outstanding_.end(); ++place) {
      if ((*place)->watchdog_entry().deadline < next_look_ && (*place)->status() == OperationStatus::kPending) {
        next_look_ = (*place)->watchdog_entry().deadline;
        first = place;
      }
    }
    if (first == outstanding_.end()) {
      watch_.wait(lock);
    } else if (next_look_ > SteadyClock::now()) {
      watch_.wait_until(lock, next_look_);
    } else {
      const OperationPtr late = *first;
      lock.unlock();
      time_out(late);
      lock.lock();
    }
  }
}

void ProgressEngine::time_out(const OperationPtr& late) {
  std::string cause = "no answer from the other ranks within its timeout of ";
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cause += std::to_string(late->watchdog_entry().timeout.count()) + " ms";
    cause += ": " + (late->watchdog_entry().is_silenced ? kLostByFault : matcher_.missing_ranks(*late));
  }
  fail(late, cause + "; look for a rank that has ended, hangs, or did not make this call");
}

std::string ProgressEngine::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

size_t ProgressEngine::outstanding() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return outstanding_.size();
}

void ProgressEngine::wait_idle() const {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return outstanding_.empty(); });
}

void ProgressEngine::drop_returned() {
  std::vector<std::shared_ptr<void>> returned;
  const std::lock_guard<std::mutex> lock(mutex_);
  returned.swap(returned_);
}

void ProgressEngine::close() {
  std::map<int, std::unique_ptr<SubmissionQueue>> queues;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    queues.swap(queues_);
    watch_.notify_one();
  }
}

void ProgressEngine::wait_closed() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return outstanding_.empty(); });
  }
  // For callers that keep an operation longer than the group.
  refuse(OperationStatus::kAborted, "the group was destroyed; make a new one with init_process_group()");
  if (control_channel_ != nullptr) {
    control_channel_->close(TransportEnd::kNone);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return users_ == 0; });
}

}  // namespace openreg::distributed
