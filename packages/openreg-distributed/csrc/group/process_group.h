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

#include "collective_fingerprint.h"
#include "comm_stream_pool.h"
#include "progress/progress_engine.h"
#include "transport/transfers.h"

namespace openreg::distributed {

// The process group "occl" (source: c10d::Backend): collectives on tensors of the device, in stream order, carried by
// another backend that works on memory of the host.
//
// A call enqueues on a lane: wait for the caller's stream, bring the operands into one piece, wait for the messages,
// bring the results where they belong. It returns at once. The transport works on the same bytes through the kernel
// view, between the two halves, on threads of its own; neither an engine nor the host is blocked meanwhile.
//
// Ranks make the same calls in the same order, from any of their threads. Tensors may lie on any openreg device, all of
// a call on one. Errors in arguments are raised by the call; those of the transport as Work says.
class ProcessGroup final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // `transport` is Gloo's backend of the same ranks, which nobody else uses. With `copies_operands` it works on copies
  // that are made on the lane: what a program sees that forgets to wait then follows from the order of streams alone,
  // and not from how fast the messages are. `token` is what the ranks of this group have in common, and no group of
  // other processes: stores keep what ranks wrote that have ended.
  ProcessGroup(c10::intrusive_ptr<c10d::Backend> transport, std::chrono::milliseconds timeout, bool copies_operands,
               std::string token);
  // Never waits for another rank: what is under way keeps the transport alive.
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "occl"; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  // The transport's: PyTorch hands the options of one backend to the others of a group when it splits the group.
  c10::intrusive_ptr<Options> getBackendOptions() override { return transport_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}  // each rank counts its calls from the beginning
  uint64_t getSequenceNumberForGroup() override;
  c10d::ErrorType getError() override;
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  // Ends what is under way with an error, here and on the other ranks; the group takes no more calls. The device goes
  // on.
  void abort() override;
  // Waits for what is under way; the group takes no more calls of this rank.
  void shutdown() override;

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
  // A barrier that the host waits for. Its error names all ranks that did not come, whether asked for or not.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override {}  // each work knows its duration

 private:
  struct Call {
    const char* name;  // a literal
    c10d::OpType type;
    Tensors inputs;   // what it reads
    Tensors outputs;  // what it writes; of a call in place the same tensors
    std::chrono::milliseconds timeout;
    Agreed agreed{};
    Route route{};
    std::optional<c10::Device> device{};  // where there are no tensors

    Tensors operands() const;
    // What the work's result() and future give.
    const Tensors& results() const { return type == c10d::OpType::SEND ? inputs : outputs; }
  };

  // What a call does on its lane.
  struct Steps {
    std::vector<Transfer> transfers;
    std::function<void()> after{};  // enqueues what follows the messages
    Tensors staging{};              // further memory that the transport uses
  };

  // `before` enqueues what comes before the messages and says what follows; the lane is the current stream meanwhile.
  WorkPtr enqueue(Call call, const std::function<Steps()>& before);
  Description describe(const Call& call, const Tensors& operands);
  Terms terms_of(const Call& call);
  std::shared_ptr<Flight> record(const Call& call, std::shared_ptr<void> stack);
  // "rank 0 of 2 in the group ...".
  std::string place_of() const;
  // How errors in arguments begin: "occl: all_reduce on rank 0 of 2 in the group ...".
  std::string where(const char* name) const;
  c10::Device check_operands(const Call& call, const Tensors& operands) const;
  void check_peer(const char* name, int peer) const;
  void check_message(const char* name, const Tensors& tensors, int peer, int tag) const;
  std::chrono::milliseconds limit(std::chrono::milliseconds timeout) const;

  // Brings inputs[i] of all ranks into outputs[i], which are one tensor or one for each rank.
  WorkPtr gather_into(const char* name, c10d::OpType type, const Tensors& inputs, const std::vector<Tensors>& outputs,
                      std::chrono::milliseconds timeout);
  // Brings part i of each of the rank's chunks, of which there is a list for each output, to rank i, which reduces what
  // it gets.
  WorkPtr reduce_chunks(Call call, const c10d::ReduceOp& operation,
                        const std::function<std::vector<Tensors>()>& chunks_on_lane);
  // Sends sent[i] to rank i and receives received[i] from it, which are parts of the call's tensors. One rank may be
  // the root of it.
  WorkPtr exchange(Call call, const Tensors& sent, const Tensors& received, int root = -1);
  WorkPtr meet(const char* name, const c10d::BarrierOptions& options);
  c10::Device device_of(const c10d::BarrierOptions& options) const;
  WorkPtr reduce_all(const char* name, c10d::OpType type, const Tensors& tensors,
                     const c10d::AllreduceOptions& options);
  WorkPtr receive(const char* name, c10d::OpType type, Tensors& tensors, const Route& route);

  // In a pointer that operations under way may outlive: they use it raw, and the last one is not to destroy it.
  c10::intrusive_ptr<c10d::Backend> transport_;
  const bool copies_operands_;
  const std::string token_;
  const int64_t number_;  // of the group in this process
  const int global_rank_;
  const std::string ranks_;  // "[0, 1]", in the default group
  const std::shared_ptr<Progress> progress_;

  // Guards what follows, and the order of calls. Who waits for it may hold Python's lock, which is therefore never
  // taken under it.
  std::mutex mutex_;
  std::chrono::milliseconds timeout_;
  Lanes lanes_;
  uint64_t sequence_ = 0;     // calls
  uint64_t collectives_ = 0;  // of which so many are collectives, and so many messages
  uint64_t messages_ = 0;
  std::shared_ptr<const std::string> place_;         // "rank 0 of 2 in the group ...", as last used
  std::shared_ptr<const FlightGroup> flight_group_;  // as last used
  bool coalescing_ = false;
  std::vector<WorkPtr> coalesced_;
};

}  // namespace openreg::distributed
