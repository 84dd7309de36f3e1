// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace openreg::distributed {

// A message between ranks about an operation, without its data. It is sent before the data, so that a receive never
// gets more bytes than its tensor has, and ranks that make different calls get an error instead of each other's data.
struct ControlMessage {
  enum class Kind : uint8_t {
    kCollective,  // Announces a collective. The signatures of all ranks with this number must match.
    kMessage,     // Announces data for the receiving rank. Messages with one tag are received in order.
    kFailure,     // The group has failed on the sending rank; `text` is the reason. Nothing follows.
    kAbort,       // The group was aborted on the sending rank; `text` is the reason. Nothing follows.
  };

  Kind kind = Kind::kCollective;
  uint64_t number = 0;       // Of a collective: its index among those of the group, from 0 on.
  uint64_t fingerprint = 0;  // Of a collective: CollectiveFingerprint::hash().
  uint64_t sent = 0;         // Bytes that the receiving rank gets.
  uint64_t expected = 0;     // Of a collective: bytes that the receiving rank has to send.
  int32_t tag = 0;           // Of data for one rank.
  std::string text;          // The call, for error messages.
};

// Bytes of an encoded message, at most.
constexpr size_t kLongestMessage = 4096;

// Encodes control messages, in order, into as few strings of at most kLongestMessage bytes as possible. A text that
// does not fit into one string is cut.
std::vector<std::string> encode(const std::vector<ControlMessage>& messages);
// Appends the control messages of an encoded string to `messages`. Returns false if `encoded` is no such string. Bytes
// behind the encoded ones are ignored.
bool decode(std::string_view encoded, std::vector<ControlMessage>& messages);

}  // namespace openreg::distributed
