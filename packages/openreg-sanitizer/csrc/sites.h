// SPDX-License-Identifier: BSD-3-Clause
// Sites: the places in a program that make accesses, each with the kind of the task and the stacks that led to it.
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

// One site. Stacks are numbers in the StackTable (stacks.h); 0 stands for none. `operation` and `node` are null for
// none; the SiteTable owns them.
struct Site {
  orTaskKind kind = orTaskKernel;
  bool on_host = false;                    // an operator on the CPU or a release of memory, which is no task
  const std::string* operation = nullptr;  // name of the kernel, or of the operator on the CPU
  uint32_t stack = 0;                      // of the launch; for a task of a graph, of the launch of the graph
  uint32_t captured = 0;                   // of the capture, for a task of a graph
  uint32_t forward = 0;                    // of the forward operator, for a task of a derivative
  const std::string* node = nullptr;       // autograd node that computes the derivative

  auto operator<=>(const Site&) const = default;
};

// A table of sites by number, so that an access stores a number instead of a site. Number 0 is no site. The program has
// a limited number of sites, and so has the table. The caller holds the sanitizer's mutex.
class SiteTable {
 public:
  SiteTable() : sites_(1) {}

  // Returns the number of a site, and adds the site if it is new.
  uint32_t intern(const Site& site) {
    const auto [found, is_new] = numbers_.try_emplace(site, static_cast<uint32_t>(sites_.size()));
    if (is_new) {
      sites_.push_back(site);
    }
    return found->second;
  }
  const Site& site(uint32_t number) const { return sites_[number]; }

  // Returns the number of a site where the host itself uses memory, and adds the site if it is new.
  uint32_t host_site(const char* operation, uint32_t stack) {
    Site site;
    site.on_host = true;
    site.operation = name(operation);
    site.stack = stack;
    return intern(site);
  }

  // Returns a copy of a name that stays valid, because the name of a generated kernel may be unloaded. Null for null.
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
