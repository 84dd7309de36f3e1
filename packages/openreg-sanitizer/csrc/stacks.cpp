// SPDX-License-Identifier: BSD-3-Clause
#include <Python.h>
#include <frameobject.h>

#include <array>
#include <atomic>

#include "stacks.h"

namespace openreg::sanitizer {

namespace {

constexpr size_t kDepth = 96;

int last_instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * 2;
#endif
}

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

StackTable& StackTable::instance() {
  static auto* const table = new StackTable;  // outlives threads that launch while the process exits
  return *table;
}

uint32_t StackTable::gather() noexcept {
  PyThreadState* const thread = closed_ || Py_IsInitialized() == 0 ? nullptr : PyGILState_GetThisThreadState();
  if (thread == nullptr || is_finalizing()) {
    return 0;
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  std::array<Frame, kDepth> frames;
  size_t count = 0;
  size_t hash = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(thread);
  while (frame != nullptr && count < kDepth) {
    Frame& taken = frames[count++];
    taken = {reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)), last_instruction(frame)};
    hash = (hash ^ reinterpret_cast<uintptr_t>(taken.code)) * 0x9E3779B97F4A7C15U +
           static_cast<size_t>(taken.last_instruction);
    hash ^= hash >> 29U;
    PyFrameObject* const outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  uint32_t number = 0;
  bool is_new = count > 0;
  try {
    if (count > 0) {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto [begin, end] = numbers_.equal_range(hash);
      for (auto known = begin; known != end && number == 0; ++known) {
        const Frames& other = stacks_[known->second - 1];
        if (other.size() == count && std::equal(other.begin(), other.end(), frames.begin())) {
          number = known->second;
          is_new = false;
        }
      }
      if (number == 0) {
        stacks_.emplace_back(frames.begin(), frames.begin() + static_cast<ptrdiff_t>(count));
        number = static_cast<uint32_t>(stacks_.size());
        numbers_.emplace(hash, number);
      }
    }
  } catch (const std::bad_alloc&) {
    number = 0;
    is_new = false;
  }
  for (size_t i = 0; !is_new && i < count; ++i) {
    Py_DECREF(frames[i].code);
  }
  PyGILState_Release(gil);
  return number;
}

pybind11::list StackTable::symbolize(uint32_t stack) {
  Frames frames;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stack != 0 && stack <= stacks_.size()) {
      frames = stacks_[stack - 1];
    }
  }
  pybind11::list result;
  for (const Frame& frame : frames) {
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
