// SPDX-License-Identifier: BSD-3-Clause
#include "transport/transport_control_channel.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>

#include "progress/control_message.h"

namespace openreg::distributed {

namespace {

// The number of sends to a peer that may be incomplete before send() blocks. The readers of a peer always receive, so
// only a stopped process leaves as many.
constexpr size_t kWindow = 64;
// A timeout that stands for none.
constexpr std::chrono::hours kForever{24 * 365};
// The time in which control messages that are under way arrive, before the connections are closed.
constexpr std::chrono::milliseconds kGrace{100};
// The time in which a peer receives the last messages and closes its connections, also on a busy machine.
constexpr std::chrono::milliseconds kPeerGrace{2000};

at::Tensor buffer_of(size_t size) {
  return at::empty({static_cast<int64_t>(size)}, at::TensorOptions(c10::kByte));
}

// Returns true if the rank that has sent the message will close its connections.
bool is_last(const std::string& encoded) {
  std::vector<ControlMessage> messages;
  decode(encoded, messages);
  return !messages.empty() && (messages.back().kind == ControlMessage::Kind::kFailure ||
                               messages.back().kind == ControlMessage::Kind::kAbort);
}

}  // namespace

TransportControlChannel::TransportControlChannel(c10d::Backend& transport)
    : transport_(transport), inboxes_(static_cast<size_t>(transport.getSize())) {
  for (int rank = 0; rank < transport.getSize(); ++rank) {
    outboxes_.push_back(std::make_unique<Outbox>());
  }
}

TransportControlChannel::~TransportControlChannel() = default;

void TransportControlChannel::send(int peer, const std::string& message) {
  Outbox& outbox = *outboxes_[static_cast<size_t>(peer)];
  const std::lock_guard<std::mutex> order(outbox.mutex);
  if (outbox.sent.size() >= kWindow) {
    if (!wait_for(outbox.sent.front())) {
      return;
    }
    outbox.sent.pop_front();
  }
  hand_over(outbox, peer, message);
}

void TransportControlChannel::try_send(int peer, const std::string& message) noexcept {
  Outbox& outbox = *outboxes_[static_cast<size_t>(peer)];
  const std::unique_lock<std::mutex> order(outbox.mutex, std::try_to_lock);
  if (!order) {
    return;  // The peer is far behind.
  }
  try {
    hand_over(outbox, peer, message);
  } catch (const std::exception&) {
    // The peer has exited.
  }
}

void TransportControlChannel::hand_over(Outbox& outbox, int peer, const std::string& message) {
  const at::Tensor bytes = buffer_of(message.size());
  std::memcpy(bytes.mutable_data_ptr(), message.data(), message.size());
  std::vector<at::Tensor> tensors{bytes};
  outbox.sent.push_back(transport_.send(tensors, peer, kTag));
}

std::optional<std::string> TransportControlChannel::receive(int peer) {
  Inbox& inbox = inboxes_[static_cast<size_t>(peer)];
  if (inbox.work == nullptr) {
    expect(inbox, peer);
  }
  if (!wait_for(inbox.work)) {
    end_transport(inbox, peer);
    return std::nullopt;
  }
  return take(inbox, peer);
}

void TransportControlChannel::expect(Inbox& inbox, int peer) {
  inbox.bytes = buffer_of(kLongestMessage);
  std::vector<at::Tensor> tensors{inbox.bytes};
  inbox.work = nullptr;
  inbox.work = transport_.recv(tensors, peer, kTag);
}

std::string TransportControlChannel::take(Inbox& inbox, int peer) {
  std::string message(static_cast<const char*>(inbox.bytes.const_data_ptr()), kLongestMessage);
  inbox.is_last = inbox.is_last || is_last(message);
  try {
    expect(inbox, peer);  // Before the message is used, so that the next one finds a receive.
  } catch (const std::exception&) {
    // The peer has closed its connections after this message. The next call throws.
  }
  return message;
}

bool TransportControlChannel::wait_for(const WorkPtr& work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) {
      return false;
    }
    waiting_.push_back(work);
  }
  const auto forget = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(waiting_, work);
  };
  try {
    const bool done = work->wait(kForever);
    forget();
    return done;
  } catch (...) {
    forget();
    throw;
  }
}

void TransportControlChannel::close(TransportEnd end) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  end_ = std::max(end_, end);
  for (const WorkPtr& work : waiting_) {
    work->abort();
  }
}

TransportEnd TransportControlChannel::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return end_;
}

// Gloo has no function that closes the connections of a group. A wait that times out closes them, which ends all
// transfers over them. A wait also ends, by an exception, when the peer has closed its own.
void TransportControlChannel::end_transport(Inbox& inbox, int peer) {
  if (end() == TransportEnd::kNone) {
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + (end() == TransportEnd::kAfterPeers ? kPeerGrace : kGrace);
  const auto limit = [&] {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return inbox.is_last ? kGrace : std::max(kGrace, rest);
  };
  while (inbox.work->wait(limit())) {
    take(inbox, peer);
    if (inbox.work == nullptr) {
      return;  // The peer has closed its connections.
    }
  }
}

}  // namespace openreg::distributed
