// SPDX-License-Identifier: BSD-3-Clause
#include "trace_names.h"

#include <mutex>
#include <unordered_map>

namespace openreg::profiler {

namespace {

// The names that name_stream() has set.
struct StreamNames {
  std::mutex mutex;
  std::unordered_map<orStream_t, std::string> given;
};

StreamNames& names() {
  static StreamNames instance;
  return instance;
}

// The memory that contains an address.
struct MemoryLocation {
  orMemoryType type = orMemoryTypeUnmanaged;
  int device = -1;
};

// Returns the type of the memory at `address`, which the driver or `freed` knows, or orMemoryTypeUnmanaged.
MemoryLocation place_of(const void* address, const std::vector<FreedRange>& freed) {
  orPointerAttributes attributes{};
  if (address != nullptr && orPointerGetAttributes(&attributes, address) == orSuccess &&
      attributes.type != orMemoryTypeUnmanaged) {
    return {attributes.type, attributes.device};
  }
  orGetLastError();
  for (const FreedRange& range : freed) {
    if (range.begin <= address && address < range.end) {
      return {range.type, range.device};
    }
  }
  return {};
}

// Returns the word that CUDA's traces have for a type of memory.
const char* word(orMemoryType type) {
  switch (type) {
    case orMemoryTypeDevice:
      return "Device";
    case orMemoryTypeHost:
      return "Pinned";
    case orMemoryTypeUnmanaged:
      break;
  }
  return "Pageable";
}

}  // namespace

void name_stream(orStream_t stream, std::string name) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  if (name.empty()) {
    names().given.erase(stream);
  } else {
    names().given.insert_or_assign(stream, std::move(name));
  }
}

std::string stream_name(orStream_t stream, int device, uint32_t queue) {
  {
    const std::lock_guard<std::mutex> lock(names().mutex);
    const auto found = names().given.find(stream);
    if (found != names().given.end()) {
      return found->second;
    }
  }
  orStream_t standard = nullptr;
  if (orDeviceGetDefaultStream(&standard, device) == orSuccess && standard == stream) {
    return "default stream";
  }
  std::string name = "stream " + std::to_string(queue);
  int priority = 0;
  if (orStreamGetPriority(stream, &priority) == orSuccess && priority != 0) {
    name += " (priority " + std::to_string(priority) + ")";
  }
  orGetLastError();
  return name;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> result;
  int count = 0;
  if (orGetEngineCount(&count) == orSuccess) {
    for (int index = 0; index < count; ++index) {
      orEngineStats stats{};
      const bool is_known = orEngineGetStats(&stats, index) == orSuccess;
      result.push_back((is_known ? stats.name : std::string("engine")) + " " + std::to_string(index));
    }
  }
  orGetLastError();
  return result;
}

std::string transfer_name(const TaskRecord& task, const std::vector<FreedRange>& freed) {
  if (task.kind == orTaskFill) {
    return "Memset (Device)";
  }
  const MemoryLocation from = place_of(task.source, freed);
  const MemoryLocation to = place_of(task.destination, freed);
  const bool is_from_device = from.type == orMemoryTypeDevice;
  const bool is_to_device = to.type == orMemoryTypeDevice;
  const char* way = "HtoH";
  if (is_from_device && is_to_device) {
    way = from.device == to.device ? "DtoD" : "PtoP";
  } else if (is_from_device) {
    way = "DtoH";
  } else if (is_to_device) {
    way = "HtoD";
  }
  return std::string("Memcpy ") + way + " (" + word(from.type) + " -> " + word(to.type) + ")";
}

}  // namespace openreg::profiler
