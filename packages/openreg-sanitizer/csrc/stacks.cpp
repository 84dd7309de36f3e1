// SPDX-License-Identifier: BSD-3-Clause
#include <Python.h>
#include <frameobject.h>
#include <torch/csrc/utils/pythoncapi_compat.h>

#include <algorithm>
#include <array>
#include <new>

#include "stacks.h"

namespace openreg::sanitizer {

namespace {

constexpr size_t kMaxFrames = 96;  // of a stack, the innermost ones

int last_instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * 2;
#endif
}

}  // namespace

StackTable& StackTable::instance() {
  static auto* const table = new StackTable;  // never destroyed: threads may launch while the process exits
  return *table;
}

// Writes the innermost frames of a thread, with a reference to each code object. Returns their number. The caller holds
// the GIL.
size_t StackTable::walk(PyThreadState* thread, std::span<RawFrame> frames) {
  size_t count = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(thread);
  while (frame != nullptr && count < frames.size()) {
    frames[count++] = {reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)), last_instruction(frame)};
    PyFrameObject* const outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return count;
}

size_t StackTable::hash_of(std::span<const RawFrame> frames) {
  size_t hash = 0;
  for (const RawFrame& frame : frames) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(frame.code)) * 0x9E3779B97F4A7C15U +
           static_cast<size_t>(frame.last_instruction);
    hash ^= hash >> 29U;
  }
  return hash;
}

// Returns the number of a stack in the table, or 0. The caller holds mutex_.
uint32_t StackTable::find(std::span<const RawFrame> frames, size_t hash) const {
  const auto [begin, end] = numbers_.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& entry) {
    return std::equal(frames.begin(), frames.end(), stacks_[entry.second - 1].begin(), stacks_[entry.second - 1].end());
  });
  return found == end ? 0 : found->second;
}

// Writes the number of a stack, or 0 if memory is exhausted. Returns true if the stack is new in the table, which then
// owns the references to its code objects.
bool StackTable::intern(std::span<const RawFrame> frames, uint32_t& number) {
  const size_t hash = hash_of(frames);
  const std::lock_guard<std::mutex> lock(mutex_);
  number = find(frames, hash);
  if (number != 0) {
    return false;
  }
  try {
    stacks_.emplace_back(frames.begin(), frames.end());
    numbers_.emplace(hash, static_cast<uint32_t>(stacks_.size()));
  } catch (const std::bad_alloc&) {
    return false;
  }
  number = static_cast<uint32_t>(stacks_.size());
  return true;
}

uint32_t StackTable::gather() noexcept {
  PyThreadState* const thread = closed_ || Py_IsInitialized() == 0 ? nullptr : PyGILState_GetThisThreadState();
  if (thread == nullptr || Py_IsFinalizing() != 0) {
    return 0;
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  std::array<RawFrame, kMaxFrames> buffer;
  const std::span<const RawFrame> frames(buffer.data(), walk(thread, buffer));
  uint32_t number = 0;
  if (!frames.empty() && !intern(frames, number)) {
    for (const RawFrame& frame : frames) {
      Py_DECREF(frame.code);
    }
  }
  PyGILState_Release(gil);
  return number;
}

pybind11::list StackTable::symbolize(uint32_t stack) {
  RawFrames frames;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stack != 0 && stack <= stacks_.size()) {
      frames = stacks_[stack - 1];
    }
  }
  pybind11::list result;
  for (const RawFrame& frame : frames) {
    auto* const code = reinterpret_cast<PyCodeObject*>(frame.code);
    const pybind11::handle object(frame.code);
    result.append(pybind11::make_tuple(object.attr("co_filename"), PyCode_Addr2Line(code, frame.last_instruction),
                                       object.attr("co_name")));
  }
  return result;
}

size_t StackTable::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stacks_.size();
}

}  // namespace openreg::sanitizer
