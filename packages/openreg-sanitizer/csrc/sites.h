// SPDX-License-Identifier: BSD-3-Clause
// The places of a program that enqueue tasks: what each task is, and the stacks that led to it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "openreg.h"

namespace openreg::sanitizer {

// One place. Stacks are numbers of the StackTable; 0 stands for none. `operation` and `node` are null for none.
struct Site {
  orTaskKind kind = orTaskKernel;
  bool on_host = false;                    // an operator on the CPU, no task
  const std::string* operation = nullptr;  // name of the kernel, or of the operator of the host
  uint32_t stack = 0;                      // of the launch; of a graph, of the launch of the graph
  uint32_t captured = 0;                   // of the capture, for a task of a graph
  uint32_t forward = 0;                    // of the operator whose derivative the task belongs to
  const std::string* node = nullptr;       // of autograd

  auto operator<=>(const Site&) const = default;
};

// Places by number, so that an access in the shadow is small. Number 0 is no place. Bounded by the places of the
// program. The caller holds the sanitizer's mutex.
class SiteTable {
 public:
  SiteTable() : sites_(1) {}
  uint32_t intern(const Site& site) {
    const auto [found, is_new] = numbers_.try_emplace(site, static_cast<uint32_t>(sites_.size()));
    if (is_new) {
      sites_.push_back(site);
    }
    return found->second;
  }
  const Site& site(uint32_t number) const { return sites_[number]; }

  // Returns a copy of a name that stays valid, because the name of a generated kernel may be unloaded.
  const std::string* name(const char* text) {
    if (text == nullptr) {
      return nullptr;
    }
    const auto found = names_.find(std::string_view(text));
    return &*(found != names_.end() ? found : names_.emplace(text).first);
  }

 private:
  std::vector<Site> sites_;
  std::map<Site, uint32_t> numbers_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace openreg::sanitizer
