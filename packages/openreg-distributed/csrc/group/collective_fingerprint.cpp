// SPDX-License-Identifier: BSD-3-Clause
#include "group/collective_fingerprint.h"

namespace openreg::distributed {

namespace {

// The hash FNV-1a. Unlike std::hash, it has the same result in all processes.
class Fnv1aHash {
 public:
  void add(std::string_view text) {
    for (const char letter : text) {
      step(static_cast<unsigned char>(letter));
    }
    step(0);
  }
  void add(uint64_t number) {
    for (int i = 0; i < 8; ++i) {
      step(static_cast<unsigned char>(number >> (8 * i)));
    }
  }
  uint64_t value() const { return value_; }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3; }

  uint64_t value_ = 0xCBF29CE484222325;
};

std::vector<uint64_t> bytes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<uint64_t> bytes;
  bytes.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    bytes.push_back(tensor.nbytes());
  }
  return bytes;
}

}  // namespace

CollectiveFingerprint CollectiveFingerprint::alike(const char* algorithm, const std::vector<at::Tensor>& tensors) {
  CollectiveFingerprint fingerprint{algorithm};
  fingerprint.pieces = bytes_of(tensors);
  uint64_t all = 0;
  for (const uint64_t piece : fingerprint.pieces) {
    all += piece;
  }
  fingerprint.sent = {all};
  fingerprint.expected = {all};
  return fingerprint;
}

CollectiveFingerprint CollectiveFingerprint::by_rank(const char* algorithm, const std::vector<at::Tensor>& sent,
                                                     const std::vector<at::Tensor>& expected) {
  CollectiveFingerprint fingerprint{algorithm};
  fingerprint.sent = bytes_of(sent);
  fingerprint.expected = bytes_of(expected);
  return fingerprint;
}

uint64_t CollectiveFingerprint::hash(std::string_view dtype) const {
  Fnv1aHash hash;
  hash.add(algorithm);
  hash.add(static_cast<uint64_t>(root));
  if (reduction != nullptr) {
    hash.add(reduction);
    hash.add(dtype);
  }
  if (pieces.size() > 1) {
    for (const uint64_t piece : pieces) {
      hash.add(piece);
    }
  }
  return hash.value();
}

}  // namespace openreg::distributed
