// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace openreg::distributed {

// Selects what close() does with the transport, the c10d backend that moves the bytes between the ranks of a group
// (Gloo).
enum class TransportEnd : uint8_t {
  kNone,        // Its transfers continue.
  kSoon,        // Incomplete transfers fail soon afterwards.
  kAfterPeers,  // The same, but not before the peers have received the last messages. A peer has two seconds for that.
};

// Carries control messages (messages about operations, without their data; control_message.h) between the ranks of a
// group, in order for each pair of ranks. A message is a string of encode(). Thread-safe.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  // Sends a message. May block while the peer is far behind. If close() is called meanwhile, returns without sending
  // the message. Throws std::exception if the peer has exited.
  virtual void send(int peer, const std::string& message) = 0;
  // Sends a message if that is possible without blocking; otherwise drops it. Never throws.
  virtual void try_send(int peer, const std::string& message) noexcept = 0;
  // Blocks until the next message of a peer has arrived; returns nothing once the channel is closed. Any bytes may
  // follow the message in the returned string; decode() ignores them. At most one thread receives from a peer. Throws
  // std::exception if the peer has exited.
  virtual std::optional<std::string> receive(int peer) = 0;
  // Closes the channel on this rank, and makes all blocked calls return. Of several calls, the last value of `end` in
  // its order counts.
  virtual void close(TransportEnd end) noexcept = 0;
};

}  // namespace openreg::distributed
