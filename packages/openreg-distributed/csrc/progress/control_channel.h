// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

namespace openreg::distributed {

// Carries short messages between the ranks of a group, in order for each pair, beside what the operations move.
// Thread-safe.
class PeerLink {
 public:
  virtual ~PeerLink() = default;

  // Hands a message over. May block while the other rank is far behind. Throws std::exception where it is gone.
  virtual void send(int peer, const std::string& message) = 0;
  // The same, as far as it can be done at once; never throws.
  virtual void try_send(int peer, const std::string& message) noexcept = 0;
  // Blocks until the next message of a rank has come; nothing once the link is closed. One thread for each rank. Throws
  // std::exception where the rank is gone.
  virtual std::optional<std::string> receive(int peer) = 0;
  // Lets all calls return. With `ends_transport` whatever the transport still does for the group ends soon, in an
  // error.
  virtual void close(bool ends_transport) noexcept = 0;
};

}  // namespace openreg::distributed
