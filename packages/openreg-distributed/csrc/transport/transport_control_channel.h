// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "progress/control_channel.h"

namespace openreg::distributed {

// The link of a group: messages of the transport with a tag of their own. Does not own the transport.
class ControlLink final : public PeerLink {
 public:
  // No message of the program may have it.
  static constexpr int kTag = 0x7FFFFFFF;

  explicit ControlLink(c10d::Backend& transport);
  ~ControlLink() override;

  void send(int peer, const std::string& message) override;
  void try_send(int peer, const std::string& message) noexcept override;
  std::optional<std::string> receive(int peer) override;
  void close(bool ends_transport) noexcept override;

 private:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // The transport keeps no message that it could not send yet: whoever drops its work drops the message.
  struct Outbox {
    std::mutex mutex;  // held while sending, which keeps the order
    std::deque<WorkPtr> sent;
  };

  // For the thread that receives from the rank.
  struct Inbox {
    WorkPtr work;
    at::Tensor bytes;
  };

  void hand_over(Outbox& outbox, int peer, const std::string& message);
  void expect(Inbox& inbox, int peer);
  // False once the link is closed.
  bool wait_for(const WorkPtr& work);
  bool ends_transport();
  void end_transport(Inbox& inbox, int peer);

  c10d::Backend& transport_;
  std::vector<std::unique_ptr<Outbox>> outboxes_;
  std::vector<Inbox> inboxes_;
  std::mutex mutex_;  // guards what follows
  std::vector<WorkPtr> waiting_;
  bool closed_ = false;
  bool ends_transport_ = false;
};

}  // namespace openreg::distributed
