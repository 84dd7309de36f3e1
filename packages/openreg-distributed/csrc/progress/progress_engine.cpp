// SPDX-License-Identifier: BSD-3-Clause
#include "progress_engine.h"

#include <exception>
#include <utility>

#include "platform.h"
#include "threads.h"

namespace openreg::distributed {

namespace {

constexpr const char* kAdvice =
    "; end the group with torch.distributed.destroy_process_group(), and torch.openreg.reset_device() makes the device "
    "usable again";
constexpr const char* kGone = " has ended, or closed its connections";
constexpr const char* kLostByFault = "its messages were lost, by an injected fault";

// In which another rank says why its connections are closed.
constexpr std::chrono::milliseconds kPatience{200};
// Of an operation for which that was ordered.
constexpr std::chrono::seconds kDelay{1};

// The groups of this process. Never destroyed, as their threads may outlive the destructors of statics.
struct Groups {
  std::mutex mutex;
  std::vector<std::weak_ptr<Progress>> all;
};

Groups& groups() {
  static auto* const groups = new Groups;
  return *groups;
}

}  // namespace

Progress::Use::Use(Progress& progress) : progress_(progress) {
  const std::lock_guard<std::mutex> lock(progress_.mutex_);
  ++progress_.users_;
}

Progress::Use::~Use() {
  const std::lock_guard<std::mutex> lock(progress_.mutex_);
  if (--progress_.users_ == 0) {
    progress_.idle_.notify_all();
  }
}

Progress::Progress(int rank, int size, std::shared_ptr<PeerLink> link, std::function<void()> on_failure)
    : rank_(rank), size_(size), link_(std::move(link)), on_failure_(std::move(on_failure)), agreement_(rank, size) {}

std::shared_ptr<Progress> Progress::create(int rank, int size, std::shared_ptr<PeerLink> link,
                                           std::function<void()> on_failure) {
  auto progress = std::shared_ptr<Progress>(new Progress(rank, size, std::move(link), std::move(on_failure)));
  const std::lock_guard<std::mutex> lock(groups().mutex);
  std::erase_if(groups().all, [](const std::weak_ptr<Progress>& group) { return group.expired(); });
  groups().all.push_back(progress);
  return progress;
}

bool Progress::end_all(std::chrono::milliseconds limit) {
  std::vector<std::weak_ptr<Progress>> all;
  {
    const std::lock_guard<std::mutex> lock(groups().mutex);
    all.swap(groups().all);
  }
  for (const std::weak_ptr<Progress>& group : all) {
    if (const std::shared_ptr<Progress> progress = group.lock()) {
      progress->leave();
    }
  }
  return Threads::instance().join(limit);
}

void Progress::submit(const OperationPtr& operation, int channel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  start_readers();
  operation->watched().place = outstanding_.insert(outstanding_.end(), operation);
  std::unique_ptr<Channel>& target = channels_[channel];
  if (target == nullptr) {
    // The threads share the ownership of this object through their channel's function.
    target =
        std::make_unique<Channel>([self = shared_from_this()](const Channel::Batch& batch) { self->take_up(batch); });
  }
  target->push(operation);
}

void Progress::take_up(const Channel::Batch& batch) {
  const Use use(*this);
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
    if (operation->injected() == Injected::kKilled) {
      platform::kill_this_process();
    }
    if (operation->injected() == Injected::kDelayed) {
      operation->wait(kDelay);  // which a failure cuts short
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      silent_ = silent_ || operation->injected() == Injected::kDropped;
      if (silent_) {
        operation->watched().is_silenced = true;
        agreement_.hold_back(operation);
      } else {
        agreement_.ready(operation);
      }
    }
    begin_ready();
  }
}

void Progress::announce(const Channel::Batch& batch) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (silent_ || !failure_.empty()) {
      return;
    }
  }
  std::vector<Announcement> announcements;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) {
      continue;
    }
    announcements.clear();
    for (const OperationPtr& operation : batch) {
      if (operation->injected() == Injected::kDropped) {
        break;
      }
      Announcement announcement;
      if (agreement_.announce(*operation, peer, announcement)) {
        announcements.push_back(std::move(announcement));
      }
    }
    try {
      for (const std::string& message : encode(announcements)) {
        link_->send(peer, message);
      }
    } catch (const std::exception&) {
      lose(peer, rank_named(peer) + kGone);
    }
  }
}

void Progress::begin_ready() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (beginning_) {
    return;
  }
  beginning_ = true;
  for (;;) {
    if (!failure_.empty()) {
      const std::string reason = failure_;
      const std::vector<OperationPtr> left = agreement_.drain();
      if (left.empty()) {
        break;
      }
      lock.unlock();
      for (const OperationPtr& operation : left) {
        finish(operation, reason);
      }
    } else {
      const Agreement::Next next = agreement_.next();
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

void Progress::begin(const OperationPtr& operation, const std::string& problem) {
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

void Progress::limit(const OperationPtr& operation, std::chrono::milliseconds timeout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point deadline = Clock::now() + timeout;
  if (deadline >= operation->watched().deadline) {
    return;
  }
  operation->watched().deadline = deadline;
  operation->watched().timeout = timeout;
  if (!watching_) {
    watching_ = true;
    Threads::instance().start([self = shared_from_this()] { self->watch(); });
  } else if (deadline < next_look_) {
    watch_.notify_one();
  }
}

void Progress::transport_done(const OperationPtr& operation, const std::string& error) {
  finish(operation, error.empty() ? error : explained(error));
}

// Nearly always an error of the transport is a connection that is closed, and another rank is about to say why.
std::string Progress::explained(const std::string& error) {
  std::unique_lock<std::mutex> lock(mutex_);
  heard_.wait_for(lock, kPatience, [&] { return !failure_.empty() || !agreement_.lost().empty(); });
  const std::string lost = agreement_.lost();
  return lost.empty() ? error : lost + ": " + error;
}

void Progress::finish(const OperationPtr& operation, const std::string& problem) {
  if (problem.empty()) {
    operation->settle(Outcome::kSuccess, {});
  } else {
    fail(operation, problem);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  outstanding_.erase(operation->watched().place);
  returned_.push_back(operation->take_held());
  if (outstanding_.empty()) {
    idle_.notify_all();
    if (closed_) {
      watch_.notify_one();
    }
  }
}

void Progress::fail(const OperationPtr& culprit, const std::string& cause) {
  const Use use(*this);
  if (culprit->outcome() != Outcome::kPending) {
    return;
  }
  const std::string text = culprit->description().text() + ": " + cause;
  // The group is closed before the device fails: whoever hears of that finds it so.
  if (refuse(Outcome::kFailed, "the group has failed: " + text + kAdvice)) {
    culprit->settle(Outcome::kFailed, "occl: " + text + kAdvice);
    end("ended because " + text + kAdvice, true);
    tell_others(Announcement::Kind::kFailure, text);
    on_failure_();
  } else {
    settle_closed(culprit, failure());
  }
}

void Progress::abort(const std::string& reason) {
  const Use use(*this);
  if (refuse(Outcome::kAborted, reason)) {
    end(reason, true);
    tell_others(Announcement::Kind::kAbort, reason);
  }
}

void Progress::leave() {
  const Use use(*this);
  close();
  waiters_.close();
  const std::string reason = "the process is exiting; call torch.distributed.destroy_process_group() before";
  if (refuse(Outcome::kAborted, reason)) {
    end(reason, true);
  }
  if (link_ != nullptr) {
    link_->close(outstanding() != 0);
  }
}

bool Progress::refuse(Outcome outcome, const std::string& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) {
    return false;
  }
  failure_ = reason;
  closed_outcome_ = outcome;
  heard_.notify_all();
  return true;
}

void Progress::settle_closed(const OperationPtr& operation, const std::string& reason) {
  Outcome outcome;
  std::string text = "occl: " + operation->description().text() + ": ";
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    outcome = closed_outcome_;
    if (operation->watched().is_silenced) {  // another rank may have missed it before its own time was up
      text += std::string(kLostByFault) + "; ";
    }
  }
  operation->settle(outcome, text + reason);
}

void Progress::end(const std::string& reason, bool also_posted) {
  std::vector<OperationPtr> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.assign(outstanding_.begin(), outstanding_.end());
  }
  for (const OperationPtr& operation : all) {
    if (also_posted || !operation->is_posted()) {
      settle_closed(operation, reason);
      operation->cancel();
    }
  }
  begin_ready();  // which lets go of what waits for its turn
}

void Progress::tell_others(Announcement::Kind kind, const std::string& text) {
  if (link_ == nullptr) {
    return;
  }
  Announcement last;
  last.kind = kind;
  last.text = text;
  const std::vector<std::string> messages = encode({last});
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) {
      link_->try_send(peer, messages.front());
    }
  }
  link_->close(true);
}

void Progress::start_readers() {
  if (reading_) {
    return;
  }
  reading_ = true;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) {
      ++users_;
      Threads::instance().start([self = shared_from_this(), peer] {
        orThreadSetProgress(1);
        self->read(peer);
      });
    }
  }
}

void Progress::read(int peer) {
  try {
    while (const std::optional<std::string> message = link_->receive(peer)) {
      hear(peer, *message);
    }
  } catch (const std::exception&) {
    lose(peer, rank_named(peer) + kGone);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--users_ == 0) {
    idle_.notify_all();
  }
}

void Progress::hear(int peer, std::string_view message) {
  std::vector<Announcement> announcements;
  std::string problem;
  if (!decode(message, announcements)) {
    problem =
        rank_named(peer) + " sends what this rank cannot read; install the same openreg-distributed for all ranks";
  }
  Outcome outcome = Outcome::kFailed;
  for (Announcement& one : announcements) {
    if (one.kind == Announcement::Kind::kFailure) {
      problem = rank_named(peer) + " has failed: " + one.text;
    } else if (one.kind == Announcement::Kind::kAbort) {
      problem = rank_named(peer) + " has aborted the group";
      outcome = Outcome::kAborted;
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      problem = agreement_.hear(peer, std::move(one));
    }
    if (!problem.empty()) {
      break;
    }
  }
  if (problem.empty()) {
    begin_ready();
  } else if (refuse(outcome, "the group has failed: " + problem + kAdvice)) {
    // What the transport has may be about to end well: the other rank is through with it, perhaps. Else its
    // connections, which close a little later, end it.
    end("ended because " + problem + kAdvice, false);
    link_->close(true);
    if (outcome == Outcome::kFailed) {
      on_failure_();
    }
  }
}

void Progress::lose(int peer, const std::string& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    agreement_.lose(peer, reason);
    heard_.notify_all();
  }
  begin_ready();
}

void Progress::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_ || !outstanding_.empty()) {
    auto first = outstanding_.end();
    next_look_ = Clock::time_point::max();
    for (auto place = outstanding_.begin(); place != outstanding_.end(); ++place) {
      if ((*place)->watched().deadline < next_look_ && (*place)->outcome() == Outcome::kPending) {
        next_look_ = (*place)->watched().deadline;
        first = place;
      }
    }
    if (first == outstanding_.end()) {
      watch_.wait(lock);
    } else if (next_look_ > Clock::now()) {
      watch_.wait_until(lock, next_look_);
    } else {
      const OperationPtr late = *first;
      lock.unlock();
      time_out(late);
      lock.lock();
    }
  }
}

void Progress::time_out(const OperationPtr& late) {
  std::string cause = "no answer from the other ranks within its timeout of ";
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cause += std::to_string(late->watched().timeout.count()) + " ms";
    cause += ": " + (late->watched().is_silenced ? kLostByFault : agreement_.missing(*late));
  }
  fail(late, cause + "; look for a rank that has ended, hangs, or did not make this call");
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
  idle_.wait(lock, [&] { return outstanding_.empty(); });
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
    watch_.notify_one();
  }
}

void Progress::wait_closed() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return outstanding_.empty(); });
  }
  refuse(Outcome::kAborted, "the group is gone");  // for who keeps an operation longer than the group
  if (link_ != nullptr) {
    link_->close(false);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return users_ == 0; });
}

}  // namespace openreg::distributed
