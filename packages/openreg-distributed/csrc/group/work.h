// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <vector>

#include "openreg/runtime/event.h"
#include "progress/progress_engine.h"

namespace openreg::distributed {

// What a collective returns (source: c10d::Work; NCCL's is the model). wait() orders the calling thread's current
// stream after the operation and returns at once; the host waits only for a barrier, or where a timeout is given.
// Errors are raised by wait() when they are known by then, and by the next call that synchronises with the device
// otherwise.
class Work final : public c10d::Work {
 public:
  // `end` was recorded after all that the operation enqueued. `future` is complete in stream order.
  Work(int rank, c10d::OpType type, c10::Device device, std::shared_ptr<Progress> progress,
       std::shared_ptr<Operation> operation, runtime::Event end, std::vector<at::Tensor> outputs,
       c10::intrusive_ptr<c10::ivalue::Future> future);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  // Blocks the host until the message has come.
  int sourceRank() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // As wait(): the stream waits, never the host.
  void blockCurrentStream() override { synchronize(); }
  // Ends the whole group.
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return operation_->description().sequence; }
  // Milliseconds that the transport took; an error before it is over.
  float getDuration() const override;

 private:
  void raise_failure() const;

  const c10::Device device_;
  const std::shared_ptr<Progress> progress_;
  const std::shared_ptr<Operation> operation_;
  const runtime::Event end_;
  const std::vector<at::Tensor> outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Several of them as one, for what is coalesced.
class CoalescedWork final : public c10d::Work {
 public:
  CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
      : c10d::Work(rank, c10d::OpType::COALESCED), parts_(std::move(parts)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void blockCurrentStream() override { synchronize(); }
  void abort() override;
  // Of the last part: streams are ordered after all parts by wait().
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace openreg::distributed
