// SPDX-License-Identifier: BSD-3-Clause
#include "transport/transfers.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace openreg::distributed {

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Completes an operation when all of its transfers are complete, with the error of the first one that failed.
class Join {
 public:
  Join(std::shared_ptr<ProgressEngine> progress, std::shared_ptr<Operation> operation, size_t parts)
      : progress_(std::move(progress)), operation_(std::move(operation)), left_(parts) {}

  void done(const std::string& error) {
    if (!error.empty()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (error_.empty()) {
        error_ = error;
      }
    }
    if (--left_ == 0) {
      progress_->transport_done(operation_, error_);
    }
  }

 private:
  const std::shared_ptr<ProgressEngine> progress_;
  const std::shared_ptr<Operation> operation_;
  std::atomic<size_t> left_;
  std::mutex mutex_;
  std::string error_;
};

void wait_for_message(WorkPtr work, std::chrono::milliseconds limit, Join& join) {
  std::string error;
  try {
    if (!work->wait(limit)) {
      error = "the message was aborted";
    }
  } catch (const std::exception& failure) {
    error = first_paragraph(failure.what());
  }
  // Withdraws the memory of a message that was aborted from the transport, before the operation gives it back.
  work.reset();
  join.done(error);
}

}  // namespace

std::string first_paragraph(const std::string& message) {
  return message.substr(0, message.find("\nException raised from"));
}

Operation::Post post_all(c10d::Backend& transport, std::shared_ptr<ProgressEngine> progress,
                         std::vector<Transfer> transfers, bool are_messages) {
  return [&transport, progress = std::move(progress), transfers = std::move(transfers),
          are_messages](const std::shared_ptr<Operation>& operation) {
    if (transfers.empty()) {
      progress->transport_done(operation, {});
      return;
    }
    const auto join = std::make_shared<Join>(progress, operation, transfers.size());
    for (const Transfer& transfer : transfers) {
      WorkPtr work;
      try {
        work = transfer(transport, *operation);
      } catch (const std::exception& error) {
        join->done(first_paragraph(error.what()));
        continue;
      }
      if (are_messages) {
        operation->set_cancel([work] { work->abort(); });
        std::function<void()> wait = [work = std::move(work), join,
                                      limit = transport_limit(operation->timeout())]() mutable {
          wait_for_message(std::move(work), limit, *join);
        };
        if (!progress->wait_threads().run(wait)) {
          wait();  // The transport has the memory, so the operation must not end before.
        }
      } else {
        work->getFuture()->addCallback([join](c10::ivalue::Future& future) {
          join->done(future.hasError() ? first_paragraph(future.tryRetrieveErrorMessage()) : std::string());
        });
      }
    }
  };
}

}  // namespace openreg::distributed
