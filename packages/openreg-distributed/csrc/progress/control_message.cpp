// SPDX-License-Identifier: BSD-3-Clause
#include "progress/control_message.h"

#include <algorithm>
#include <cstring>

namespace openreg::distributed {

namespace {

// The identifier of the format. A new format gets another one, so that ranks with different releases reject each
// other's messages.
constexpr uint32_t kForm = 0x6F63636C;

// The fixed part of an encoded control message. All ranks have the same byte order, because the transport requires it.
struct MessageHeader {
  uint64_t number;
  uint64_t fingerprint;
  uint64_t sent;
  uint64_t expected;
  int32_t tag;
  uint16_t kind;
  uint16_t length;  // Bytes of the text that follows.
};

// The beginning of an encoded string.
struct StringHeader {
  uint32_t form;
  uint32_t size;  // Bytes of the string.
};

constexpr size_t kLongestText = kLongestMessage - sizeof(StringHeader) - sizeof(MessageHeader);

void append(std::string& message, const void* bytes, size_t size) {
  message.append(static_cast<const char*>(bytes), size);
}

}  // namespace

std::vector<std::string> encode(const std::vector<ControlMessage>& messages) {
  std::vector<std::string> strings;
  for (const ControlMessage& one : messages) {
    const size_t length = std::min(one.text.size(), kLongestText);
    if (strings.empty() || strings.back().size() + sizeof(MessageHeader) + length > kLongestMessage) {
      strings.emplace_back(sizeof(StringHeader), '\0');
    }
    const MessageHeader record{one.number,
                               one.fingerprint,
                               one.sent,
                               one.expected,
                               one.tag,
                               static_cast<uint16_t>(one.kind),
                               static_cast<uint16_t>(length)};
    append(strings.back(), &record, sizeof(record));
    append(strings.back(), one.text.data(), length);
  }
  for (std::string& string : strings) {
    const StringHeader head{kForm, static_cast<uint32_t>(string.size())};
    std::memcpy(string.data(), &head, sizeof(head));
  }
  return strings;
}

bool decode(std::string_view encoded, std::vector<ControlMessage>& messages) {
  const auto take = [&](void* bytes, size_t size) {
    if (encoded.size() < size) {
      return false;
    }
    std::memcpy(bytes, encoded.data(), size);
    encoded.remove_prefix(size);
    return true;
  };
  StringHeader head{};
  if (!take(&head, sizeof(head)) || head.form != kForm || head.size < sizeof(head) ||
      head.size - sizeof(head) > encoded.size()) {
    return false;
  }
  encoded = encoded.substr(0, head.size - sizeof(head));
  while (!encoded.empty()) {
    MessageHeader record{};
    if (!take(&record, sizeof(record)) || record.kind > static_cast<uint16_t>(ControlMessage::Kind::kAbort) ||
        record.length > encoded.size()) {
      return false;
    }
    messages.push_back({static_cast<ControlMessage::Kind>(record.kind), record.number, record.fingerprint, record.sent,
                        record.expected, record.tag, std::string(encoded.substr(0, record.length))});
    encoded.remove_prefix(record.length);
  }
  return true;
}

}  // namespace openreg::distributed
