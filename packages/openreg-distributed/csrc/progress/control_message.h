// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace openreg::distributed {

// What a rank tells another one of a call before anything of it moves: so a message is never larger than the memory for
// it, and ranks that make different calls hear of it instead of taking the messages of one for those of the other.
struct Announcement {
  enum class Kind : uint8_t {
    kCollective,  // the calls of all ranks with this number have to agree
    kMessage,     // a message to the rank that hears this; those of a tag are received in their order
    kFailure,     // nothing comes any more: `text` says why
    kAbort,       // the same, on purpose
  };

  Kind kind = Kind::kCollective;
  uint64_t number = 0;    // of a collective, in its group, from 0 on
  uint64_t contract = 0;  // of a collective: a hash of what all ranks have to give alike
  uint64_t sent = 0;      // bytes that the other rank gets
  uint64_t expected = 0;  // bytes that it has to give, in a collective
  int32_t tag = 0;        // of a message
  std::string text;       // the call, for errors
};

// The most bytes of a message of announcements.
constexpr size_t kLongestMessage = 4096;

// As few messages as they fit into, in order; at least one announcement each, of which the text is cut where needed.
std::vector<std::string> encode(const std::vector<Announcement>& announcements);
// False where it is no such message. There may be other bytes behind it.
bool decode(std::string_view message, std::vector<Announcement>& announcements);

}  // namespace openreg::distributed
