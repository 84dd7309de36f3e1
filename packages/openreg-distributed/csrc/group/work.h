// SPDX-License-Identifier: BSD-3-Clause
// The objects of c10d::Work that the calls of a process group return.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <vector>

#include "openreg/runtime/event.h"
#include "progress/progress_engine.h"

namespace openreg::distributed {

// The result of a collective, a send or a receive (source: c10d::Work, as implemented by ProcessGroupNCCL). wait()
// makes the calling thread's current stream wait for the operation and returns at once. It blocks the thread only for a
// barrier, or if a timeout is given. wait() throws an error that is known by then. The next call that synchronizes the
// device throws a later one.
class Work final : public c10d::Work {
 public:
  // The event `end` was recorded after all tasks of the operation. `future` is complete in stream order.
  Work(int rank, c10d::OpType type, c10::Device device, std::shared_ptr<ProgressEngine> progress,
       std::shared_ptr<Operation> operation, runtime::Event end, std::vector<at::Tensor> outputs,
       c10::intrusive_ptr<c10::ivalue::Future> future);

  // Returns true if all tasks of the operation are complete, or if it has failed or was aborted.
  bool isCompleted() override;
  // Returns true if the transport has completed the operation. Tasks after that, such as copies of results, may still
  // be pending.
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  // Blocks until the message has arrived. Returns the rank that sent it.
  int sourceRank() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  // Makes the current stream wait, as wait() does, but never blocks the thread until the operation is complete.
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void blockCurrentStream() override { synchronize(); }
  // Aborts all operations of the group, on all ranks.
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return operation_->description().sequence; }
  // Returns how long the transport (the c10d backend that moves bytes between ranks, Gloo) took, in milliseconds.
  // Throws c10::Error before the operation is complete, and if the transport never got it.
  float getDuration() const override;

 private:
  // Throws c10::DistBackendError if the operation has failed or was aborted.
  void raise_failure() const;

  const c10::Device device_;
  const std::shared_ptr<ProgressEngine> progress_;
  const std::shared_ptr<Operation> operation_;
  const runtime::Event end_;
  const std::vector<at::Tensor> outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// One work for all calls between startCoalescing() and endCoalescing() of a group. Each function acts on all of them
// unless its comment says otherwise.
class CoalescedWork final : public c10d::Work {
 public:
  CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
      : c10d::Work(rank, c10d::OpType::COALESCED), parts_(std::move(parts)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  // Returns the exception of the first part that has one, or null.
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void blockCurrentStream() override { synchronize(); }
  void abort() override;
  // Returns the future of the last part. Throws c10::Error if there is no part.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  // Returns the number of the last part, or 0 if there is no part.
  uint64_t getSequencenumber() const override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace openreg::distributed
