// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "progress/control_channel.h"

namespace openreg::distributed {

// The control channel of a group over its transport, the c10d backend that moves bytes between ranks (Gloo). Control
// messages are sends of the transport with a reserved tag. Does not own the transport.
class TransportControlChannel final : public ControlChannel {
 public:
  // The reserved tag.
  static constexpr int kTag = 0x7FFFFFFF;

  explicit TransportControlChannel(c10d::Backend& transport);
  ~TransportControlChannel() override;

  void send(int peer, const std::string& message) override;
  void try_send(int peer, const std::string& message) noexcept override;
  std::optional<std::string> receive(int peer) override;
  void close(TransportEnd end) noexcept override;

 private:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // The newest sends to a peer. A c10d::Work keeps its message alive until the transport has sent it.
  struct Outbox {
    std::mutex mutex;  // Held while sending, which keeps the order.
    std::deque<WorkPtr> sent;
  };

  // The posted receive from a peer, used by the thread that receives from it.
  struct Inbox {
    WorkPtr work;  // Null before the first receive, and if the transport has rejected one.
    at::Tensor bytes;
    bool is_last = false;  // True if the peer has sent its last message: a failure, or the end of the group.
  };

  // Passes a message to the transport. The caller holds the mutex of `outbox`.
  void hand_over(Outbox& outbox, int peer, const std::string& message);
  // Posts the receive of the next message. Throws std::exception if the peer has exited.
  void expect(Inbox& inbox, int peer);
  // Returns the message that has arrived, and posts the receive of the next one.
  std::string take(Inbox& inbox, int peer);
  // Blocks until a work is complete. Returns false if the channel is closed.
  bool wait_for(const WorkPtr& work);
  // Returns what close() has to do with the transport; kNone before it was called.
  TransportEnd end();
  // Closes the connections of the transport to all peers, unless end() is kNone, which makes its transfers fail.
  void end_transport(Inbox& inbox, int peer);

  c10d::Backend& transport_;
  std::vector<std::unique_ptr<Outbox>> outboxes_;
  std::vector<Inbox> inboxes_;
  std::mutex mutex_;              // Guards the following members.
  std::vector<WorkPtr> waiting_;  // The works for which threads wait in wait_for().
  bool closed_ = false;
  TransportEnd end_ = TransportEnd::kNone;
};

}  // namespace openreg::distributed
