// SPDX-License-Identifier: BSD-3-Clause
#include "activity.h"

#include <output_base.h>

namespace openreg::profiler {

namespace {

void add(std::string& json, const char* key, uint64_t value) {
  json += json.empty() ? "\"" : ", \"";
  json += key;
  json += "\": ";
  json += std::to_string(value);
}

void add(std::string& json, const char* key, const std::string& value) {
  json += json.empty() ? "\"" : ", \"";
  json += key;
  json += "\": \"";
  json += value;
  json += '"';
}

}  // namespace

void Activity::log(libkineto::ActivityLogger& logger) const {
  logger.handleActivity(*this);
}

const std::string Activity::metadataJson() const {
  std::string json;
  if (task == nullptr) {
    return json;
  }
  add(json, "correlation", number);
  if (kind == libkineto::ActivityType::PRIVATEUSE1_RUNTIME) {
    return json;
  }
  add(json, "device", static_cast<uint64_t>(device));
  add(json, "stream", static_cast<uint64_t>(resource));
  if (engine != nullptr) {
    add(json, "engine", *engine);
  }
  if (task->kind == orTaskCopy || task->kind == orTaskFill) {
    add(json, "bytes", task->bytes);
  }
  if (is_collective) {
    add(json, "collective", *title);
  }
  if (task->kind == orTaskEventWait) {
    add(json, "waits for stream", task->waited_queue);
    add(json, "up to", task->waited_ticket);
  }
  if (task->kind == orTaskSemaphoreWait) {
    add(json, "value", task->waited_ticket);
  }
  add(json, "place", task->ticket);
  if (task->graph_launch != 0) {
    add(json, "graph launch", task->graph_launch);
  }
  if (task->has_failed) {
    add(json, "status", std::string("failed"));
  }
  return json;
}

}  // namespace openreg::profiler
