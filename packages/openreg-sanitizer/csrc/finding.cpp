// SPDX-License-Identifier: BSD-3-Clause
#include "finding.h"

#include <utility>

namespace openreg::sanitizer {

void FindingList::add(const Violation& violation, const StreamName& first_stream, const StreamName& second_stream) {
  const auto key = std::make_tuple(violation.kind, violation.first.site, violation.second.site);
  const auto found = numbers_.find(key);
  if (found != numbers_.end()) {
    ++findings_[found->second].count;
  } else if (findings_.size() < kMaxFindings) {
    numbers_.emplace(key, findings_.size());
    findings_.push_back({violation, first_stream, second_stream, 1});
    has_news_ = has_news_ || violation.kind != FindingKind::kFreedInUse;
  }
}

bool FindingList::take_news() {
  return std::exchange(has_news_, false);
}

std::vector<Finding> FindingList::from(size_t begin) const {
  if (begin >= findings_.size()) {
    return {};
  }
  return {findings_.begin() + static_cast<ptrdiff_t>(begin), findings_.end()};
}

std::vector<uint64_t> FindingList::counts() const {
  std::vector<uint64_t> counts;
  counts.reserve(findings_.size());
  for (const Finding& finding : findings_) {
    counts.push_back(finding.count);
  }
  return counts;
}

}  // namespace openreg::sanitizer
