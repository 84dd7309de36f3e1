// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace openreg::distributed {

// A message between ranks about an operation, without the operation's data. It is sent before the data. So a receive
// never gets more bytes than its tensor has, and ranks that make different calls get an error instead of wrong data.
struct ControlMessage {
  enum class Kind : uint8_t {
    kCollective,  // Announces a collective. The signatures of all ranks with this number must match.
    kMessage,     // Announces the data of a send. Messages with one tag are received in order.
    kFailure,     // The group has failed on the sending rank; `text` is the reason. The last message of the rank.
    kAbort,       // The group was aborted on the sending rank; `text` is the reason. The last message of the rank.
  };

  Kind kind = Kind::kCollective;
  uint64_t number = 0;       // kCollective: the index among the collectives of the group, from 0 on.
  uint64_t fingerprint = 0;  // kCollective: CollectiveFingerprint::hash().
  uint64_t sent = 0;         // The bytes of data that the rank which receives this message gets.
  uint64_t expected = 0;     // kCollective: the bytes of data that the rank which receives this message has to send.
  int32_t tag = 0;           // kMessage: the tag of the send.
  std::string text;          // The description of the call for error messages, or a reason.
};

// The longest encoded string, in bytes.
constexpr size_t kLongestMessage = 4096;

// Encodes control messages, in order, into as few strings of at most kLongestMessage bytes as possible. A text that
// does not fit into one string is cut.
std::vector<std::string> encode(const std::vector<ControlMessage>& messages);
// Appends the control messages of an encoded string to `messages`. Returns false if `encoded` is no such string, also
// after it has appended some of them. Ignores bytes after the end of the string, because receive buffers are longer.
bool decode(std::string_view encoded, std::vector<ControlMessage>& messages);

}  // namespace openreg::distributed
