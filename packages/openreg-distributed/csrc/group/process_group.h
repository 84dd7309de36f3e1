// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Stream.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "group/collective_fingerprint.h"
#include "group/comm_stream_pool.h"
#include "progress/progress_engine.h"
#include "transport/transfers.h"

namespace openreg::distributed {

// The process group "occl" (source: c10d::Backend): collectives and messages on device tensors, in stream order, as in
// ProcessGroupNCCL. A message is a send and its receive. Another c10d backend, the transport, moves the bytes between
// ranks; it is Gloo, which works on host memory.
//
// A call enqueues tasks on a communication stream and returns a Work (group/work.h) at once. The tasks wait for the
// caller's stream, put the operands into a flat buffer (one contiguous tensor: a view of them if they are adjacent and
// `copies_operands` is false, otherwise a copy), wait for the transport, and copy the results into the outputs. The
// transport reads and writes the flat buffer on its own threads, through the kernel view (the mapping of device memory
// that kernels dereference). So it blocks neither an engine of the device nor the calling thread.
//
// All ranks must make the same collective calls in the same order, from any thread. A send or a receive concerns only a
// pair of ranks. The tensors of a call are on one openreg device. The call throws errors of its arguments. Errors of
// the transport are documented at Work.
class ProcessGroup final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // `transport` is a Gloo backend of the same ranks, which only this group uses. With `copies_operands`, the transport
  // works on copies made on the communication stream. Then the values that a program with a missing wait sees depend on
  // the order of tasks alone, which a seeded schedule (OPENREG_SCHEDULE_SEED) repeats, and not on the speed of the
  // network. `token` is equal on all ranks, and groups that are split from this one inherit it. It is part of the keys
  // that the groups write into a store, so that these differ from the keys of earlier processes that have exited.
  ProcessGroup(c10::intrusive_ptr<c10d::Backend> transport, std::chrono::milliseconds timeout, bool copies_operands,
               std::string token);
  // Never waits for another rank. If operations are outstanding, another thread destroys the transport after them.
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "occl"; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  // Returns the transport's options: to split a group, PyTorch passes the options of one backend to the others.
  c10::intrusive_ptr<Options> getBackendOptions() override { return transport_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}  // Does nothing, because each rank counts its calls from 0.
  uint64_t getSequenceNumberForGroup() override;
  // Returns COMM_ERROR if the group rejects calls, because it has failed, was aborted or was shut down.
  c10d::ErrorType getError() override;
  // Returns a new group of `ranks`, or null if this rank is not among them.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  // Aborts outstanding operations on all ranks and rejects later calls. The device stays usable.
  void abort() override;
  // Blocks until outstanding operations are complete, and rejects later calls on this rank.
  void shutdown() override;

  // Calls between startCoalescing() and endCoalescing() are enqueued as usual. endCoalescing() returns one
  // CoalescedWork for all of them.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  // Blocks the calling thread until all ranks have called it. The error names all missing ranks, whatever
  // `wait_all_ranks` is.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  // Blocks until outstanding operations are complete.
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override {}  // Works always have a duration.

 private:
  // One call of the group with its arguments: a collective, a send or a receive.
  struct CollectiveCall {
    const char* name;  // A literal: the name in error messages, such as "all_reduce".
    c10d::OpType type;
    Tensors inputs;
    Tensors outputs;                      // The same tensors as `inputs` if the call is in place.
    std::chrono::milliseconds timeout;    // c10d::kUnsetTimeout: the timeout of the group.
    CollectiveFingerprint fingerprint{};  // The properties that have to match on the other ranks.
    CommStreamKey key{};                  // Selects the stream of a message; collectives share one key.
    std::optional<c10::Device> device{};  // Set only for a barrier, which has no tensors.

    // Returns the inputs, followed by the outputs unless the call is in place.
    Tensors operands() const;
    // Returns the tensors of Work::result() and of its future: the outputs, or the inputs of a send.
    const Tensors& results() const { return type == c10d::OpType::SEND ? inputs : outputs; }
  };

  // The transfers of a call (calls of the transport, transport/transfers.h), and the device tasks after them.
  struct StreamSteps {
    std::vector<Transfer> transfers;
    std::function<void()> after{};  // Enqueues the tasks that follow the transfers; may be empty.
    Tensors staging{};              // The flat buffers that the transport reads and writes.
  };

  // Reports the memory that the transport accesses to tools such as sanitizers. The driver reports only tasks to them,
  // and transfers are no tasks.
  static void report_transfer(const CollectiveCall& call, const Tensors& staging, c10::Stream stream);
  // Enqueues a call. `before` enqueues the tasks that precede the transfers. It and StreamSteps::after are called with
  // the communication stream as the current stream, and `before` under `mutex_`.
  WorkPtr enqueue(CollectiveCall call, const std::function<StreamSteps()>& before);
  // The caller of the following four functions holds `mutex_`. The first three, which may throw, give the call the next
  // numbers, and count() then advances these.

  // Returns the description for error messages.
  OperationDescription describe(const CollectiveCall& call, const Tensors& operands);
  // Returns the number of the call and the properties that other ranks compare: the hash of its fingerprint, or the
  // peer and tag of a message.
  OperationSignature signature_of(const CollectiveCall& call) const;
  // Returns the record of the call for the flight recorder (trace.h).
  std::shared_ptr<FlightRecord> record(const CollectiveCall& call, std::shared_ptr<void> stack);
  // Counts the call. The other ranks expect the number of each call that is counted.
  void count(const CollectiveCall& call) noexcept;

  // Returns "rank 0 of 2 in the group ...".
  std::string rank_description() const;
  // Returns the start of an error message: "occl: all_reduce on rank 0 of 2 in the group ...".
  std::string where(const char* name) const;
  // Returns the device of the operands, or CollectiveCall::device if there are none. Throws c10::Error unless they are
  // strided tensors of one dtype on one openreg device, that of the group if it is bound to one.
  c10::Device check_operands(const CollectiveCall& call, const Tensors& operands) const;
  // Throws c10::ValueError if `peer` is no rank of the group.
  void check_peer(const char* name, int peer) const;
  // Throws c10::Error if the arguments of a send or receive are wrong.
  void check_message(const char* name, const Tensors& tensors, int peer, int tag) const;
  // Returns `timeout`, or the group's if it is unset. Never more than a year; a year also stands for no timeout. The
  // caller holds `mutex_`.
  std::chrono::milliseconds limit(std::chrono::milliseconds timeout) const;

  // Gathers inputs[i] of all ranks into outputs[i], which is one tensor or one for each rank.
  WorkPtr gather_into(const char* name, c10d::OpType type, const Tensors& inputs, const std::vector<Tensors>& outputs,
                      std::chrono::milliseconds timeout);
  // Sends chunk i of each list to rank i, which reduces the chunks that it receives. `chunks_on_stream` returns the
  // lists, one for each output. It may enqueue copies, so it is called with the communication stream as the current
  // stream.
  WorkPtr reduce_chunks(CollectiveCall call, const c10d::ReduceOp& operation,
                        const std::function<std::vector<Tensors>()>& chunks_on_stream);
  // Sends sent[i] to rank i and receives received[i] from it; both are parts of the call's tensors. `root` is -1 if the
  // call has no root.
  WorkPtr exchange(CollectiveCall call, const Tensors& sent, const Tensors& received, int root = -1);
  // Enqueues a barrier. `name` is the name of the call in error messages and in the fingerprint.
  WorkPtr enqueue_barrier(const char* name, const c10d::BarrierOptions& options);
  // Returns the device on whose streams a barrier is enqueued.
  c10::Device device_of(const c10d::BarrierOptions& options) const;
  // Implements allreduce() and allreduce_coalesced().
  WorkPtr reduce_all(const char* name, c10d::OpType type, const Tensors& tensors,
                     const c10d::AllreduceOptions& options);
  // Implements recv() and recvAnysource().
  WorkPtr receive(const char* name, c10d::OpType type, Tensors& tensors, const CommStreamKey& key);

  // Outstanding operations use the transport without ownership, because its destructor must not run on one of its
  // threads.
  c10::intrusive_ptr<c10d::Backend> transport_;
  const bool copies_operands_;
  const std::string token_;
  const int64_t number_;     // The number of the group in this process, from 0 on.
  const int global_rank_;    // The rank of this process in the default group.
  const std::string ranks_;  // All ranks of the group by their numbers in the default group, such as "[0, 1]".
  const std::shared_ptr<ProgressEngine> progress_;

  // Guards the following members and the order of calls. A thread that waits for it may hold the GIL, so the GIL is
  // never taken while it is held.
  std::mutex mutex_;
  std::chrono::milliseconds timeout_;
  CommStreamPool comm_streams_;
  uint64_t sequence_ = 0;                                // Calls so far.
  uint64_t collectives_ = 0;                             // Collectives among them.
  uint64_t messages_ = 0;                                // Sends and receives among them.
  std::shared_ptr<const std::string> rank_description_;  // The last result of rank_description(); operations share it.
  std::shared_ptr<const FlightGroup> flight_group_;      // The group of the last record; later records share it.
  bool coalescing_ = false;                              // True between startCoalescing() and endCoalescing().
  std::vector<WorkPtr> coalesced_;
};

}  // namespace openreg::distributed
