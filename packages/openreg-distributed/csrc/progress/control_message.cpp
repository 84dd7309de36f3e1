// SPDX-License-Identifier: BSD-3-Clause
#include "control_message.h"

#include <algorithm>
#include <cstring>

namespace openreg::distributed {

namespace {

// Changes with the form: ranks of different releases do not take the one for the other.
constexpr uint32_t kForm = 0x6F63636C;

// The fixed part of one, as it travels. All ranks are processors with the same order of bytes, as the transport needs.
struct Record {
  uint64_t number;
  uint64_t contract;
  uint64_t sent;
  uint64_t expected;
  int32_t tag;
  uint16_t kind;
  uint16_t length;  // of the text that follows
};

// What a message begins with: there may be room behind it.
struct Head {
  uint32_t form;
  uint32_t size;  // of the message
};

constexpr size_t kLongestText = kLongestMessage - sizeof(Head) - sizeof(Record);

void append(std::string& message, const void* bytes, size_t size) {
  message.append(static_cast<const char*>(bytes), size);
}

}  // namespace

std::vector<std::string> encode(const std::vector<Announcement>& announcements) {
  std::vector<std::string> messages;
  for (const Announcement& one : announcements) {
    const size_t length = std::min(one.text.size(), kLongestText);
    if (messages.empty() || messages.back().size() + sizeof(Record) + length > kLongestMessage) {
      messages.emplace_back(sizeof(Head), '\0');
    }
    const Record record{one.number,
                        one.contract,
                        one.sent,
                        one.expected,
                        one.tag,
                        static_cast<uint16_t>(one.kind),
                        static_cast<uint16_t>(length)};
    append(messages.back(), &record, sizeof(record));
    append(messages.back(), one.text.data(), length);
  }
  for (std::string& message : messages) {
    const Head head{kForm, static_cast<uint32_t>(message.size())};
    std::memcpy(message.data(), &head, sizeof(head));
  }
  return messages;
}

bool decode(std::string_view message, std::vector<Announcement>& announcements) {
  const auto take = [&](void* bytes, size_t size) {
    if (message.size() < size) {
      return false;
    }
    std::memcpy(bytes, message.data(), size);
    message.remove_prefix(size);
    return true;
  };
  Head head{};
  if (!take(&head, sizeof(head)) || head.form != kForm || head.size < sizeof(head) ||
      head.size - sizeof(head) > message.size()) {
    return false;
  }
  message = message.substr(0, head.size - sizeof(head));
  while (!message.empty()) {
    Record record{};
    if (!take(&record, sizeof(record)) || record.kind > static_cast<uint16_t>(Announcement::Kind::kAbort) ||
        record.length > message.size()) {
      return false;
    }
    announcements.push_back({static_cast<Announcement::Kind>(record.kind), record.number, record.contract, record.sent,
                             record.expected, record.tag, std::string(message.substr(0, record.length))});
    message.remove_prefix(record.length);
  }
  return true;
}

}  // namespace openreg::distributed
