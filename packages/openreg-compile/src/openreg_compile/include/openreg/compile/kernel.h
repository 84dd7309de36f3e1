// SPDX-License-Identifier: BSD-3-Clause
// Turns the source of a kernel that Inductor has generated into a Python extension module with one function, which
// launches the kernel on a device. kernels.py compiles such modules.
//
// A module includes this header, then has the source, which defines the function `kernel`, and then OPENREG_KERNEL().
// It is linked neither with the runtime nor with torch. When it is loaded, it looks up the table of functions of
// openreg/runtime/launch_entry.h and the function that returns a tensor's address.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include "openreg/runtime/launch_entry.h"

namespace openreg::compile {

// The anonymous namespace keeps the variables of modules separate. Without it, the dynamic loader would merge static
// members of templates that have the same name in several modules.
namespace {

// Stores the first exception of the threads of a parallel loop, because an exception must not leave the loop. Any
// thread calls keep() in an exception handler. One thread calls rethrow() after the loop.
class FirstException {
 public:
  void keep() noexcept {
    if (!is_taken_.exchange(true)) {
      error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

 private:
  std::atomic<bool> is_taken_{false};
  std::exception_ptr error_;
};

// The functions and Python objects of this process that the module uses. They are set when the module is loaded, and
// used with the GIL held. References are never released.
struct ProcessSymbols {
  const orLaunchEntry* entry = nullptr;
  void* (*tensor_data)(PyObject*) = nullptr;  // PyTorch's function that returns the address of a tensor
  PyObject* accelerator_error = nullptr;      // torch.AcceleratorError
  PyObject* extent = nullptr;                 // extent() of kernels.py
};
ProcessSymbols process;

// An argument of a kernel in the block of memory that the launch copies: an address, a number, or the value of a tensor
// of one element on the host. Such a value has up to 16 bytes.
struct alignas(16) ArgumentSlot {
  std::array<unsigned char, 16> bytes;
};

template <class T>
void put(ArgumentSlot& slot, T value) {
  static_assert(sizeof(T) <= sizeof(ArgumentSlot) && std::is_trivially_copyable_v<T>);
  std::memcpy(slot.bytes.data(), &value, sizeof(T));
}

template <class T>
T get(const ArgumentSlot& slot) {
  T value;
  std::memcpy(&value, slot.bytes.data(), sizeof(T));
  return value;
}

// Writes an argument of the kernel type T to a slot. `kind` is the letter of the argument, as compile_kernel() in
// kernels.py defines it: d for a tensor on the device, h for a tensor of one element on the host, n for a number.
// Returns false with a Python exception if the argument cannot be converted.
template <class T>
bool read(PyObject* argument, char kind, ArgumentSlot& slot) {
  if constexpr (std::is_pointer_v<T>) {
    auto* address = static_cast<char*>(process.tensor_data(argument));
    if (kind == 'h') {
      std::memcpy(slot.bytes.data(), address, sizeof(std::remove_pointer_t<T>));
    } else {
      put(slot, address == nullptr ? nullptr : address + process.entry->kernel_view_offset);
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    put(slot, static_cast<T>(PyFloat_AsDouble(argument)));
  } else {
    static_assert(std::is_integral_v<T>);
    put(slot, static_cast<T>(PyLong_AsLongLong(argument)));
  }
  return PyErr_Occurred() == nullptr;
}

// Returns the argument in a slot. That of kind 'h' is a pointer to the value in the slot.
template <class T>
T argument_of(ArgumentSlot& slot, char kind) {
  if constexpr (std::is_pointer_v<T>) {
    if (kind == 'h') {
      return reinterpret_cast<T>(slot.bytes.data());
    }
  }
  return get<T>(slot);
}

// The operands of a launch, which are collected only if an observer of the device, such as a profiler, requires them.
// They are reported as dense ranges of bytes.
template <size_t kCapacity>
class OperandList {
 public:
  // Adds the memory of an argument, if it is a tensor of the device. Returns false with a Python exception if its
  // extent cannot be computed. A pointer to const is reported as read, and any other as read and written, because
  // Inductor uses one type for outputs and for tensors that it updates.
  template <class T>
  bool add(PyObject* argument, char kind) {
    if constexpr (std::is_pointer_v<T>) {
      if (kind == 'd' && is_wanted_) {
        PyObject* const extent = PyObject_CallOneArg(process.extent, argument);
        const size_t size = extent == nullptr ? 0 : PyLong_AsSize_t(extent);
        Py_XDECREF(extent);
        if (PyErr_Occurred() != nullptr) {
          return false;
        }
        if (size != 0) {
          const bool is_read_only = std::is_const_v<std::remove_pointer_t<T>>;
          operands_[count_++] = {process.tensor_data(argument), size, is_read_only ? orAccessRead : orAccessReadWrite};
        }
      }
    }
    return true;
  }
  void add_to(orLaunch& launch) const {
    launch.operands = is_wanted_ ? operands_.data() : nullptr;
    launch.operand_count = count_;
  }

 private:
  const bool is_wanted_ = process.entry->operands_wanted() != 0;
  std::array<orOperand, kCapacity> operands_;
  size_t count_ = 0;
};

// Raises torch.AcceleratorError with the driver's last message, and returns null.
PyObject* raise(orError_t status) {
  const char* message = process.entry->last_error_message();
  PyObject* error = PyObject_CallFunction(process.accelerator_error, "s", message);
  if (error != nullptr) {
    PyObject* code = PyLong_FromLong(status);
    if (code != nullptr && PyObject_SetAttrString(error, "error_code", code) == 0) {
      PyErr_SetObject(process.accelerator_error, error);
    }
    Py_XDECREF(code);
    Py_DECREF(error);
  }
  return nullptr;
}

// The launch of the kernel `Function`, whose parameters have the types `Parameters`. `Numbers` is their index sequence.
template <auto Function, class Numbers, class... Parameters>
struct Launch;

template <auto Function, size_t... I, class... Parameters>
struct Launch<Function, std::index_sequence<I...>, Parameters...> {
  static constexpr size_t kCount = sizeof...(Parameters);
  static inline const char* name = nullptr;   // in errors and profiles
  static inline const char* kinds = nullptr;  // the letter of each parameter (d, h or n, see read())

  // Calls the kernel. Runs on a thread of an engine. `block` contains the slots.
  static orError_t run(void* block, char* /*message*/, size_t /*message_size*/) {
    auto* slots = static_cast<ArgumentSlot*>(block);
    (void)slots;
    Function(argument_of<Parameters>(slots[I], kinds[I])...);
    return orSuccess;
  }

  // Launches the kernel on the current stream of a device. The code that Inductor's wrapper generates calls it with the
  // kernel's arguments and the index of the device.
  static PyObject* call(PyObject* /*self*/, PyObject* const* arguments, Py_ssize_t count) {
    if (count != static_cast<Py_ssize_t>(kCount + 1)) {
      return PyErr_Format(PyExc_TypeError, "%s: expected %zu arguments and a device index, but got %zd in all", name,
                          kCount, count);
    }
    std::array<ArgumentSlot, kCount == 0 ? 1 : kCount> slots;
    OperandList<kCount + 1> operands;
    if (!((read<Parameters>(arguments[I], kinds[I], slots[I]) &&
           operands.template add<Parameters>(arguments[I], kinds[I])) &&
          ...)) {
      return nullptr;
    }
    const long device = PyLong_AsLong(arguments[kCount]);
    if (device == -1 && PyErr_Occurred() != nullptr) {
      return nullptr;
    }
    orLaunch launch{};
    launch.size = sizeof(launch);
    launch.device = static_cast<int>(device);
    launch.name = name;
    launch.function = &run;
    launch.arguments = slots.data();
    launch.arguments_size = kCount * sizeof(ArgumentSlot);
    launch.arguments_alignment = alignof(ArgumentSlot);
    operands.add_to(launch);
    const orError_t status = process.entry->launch(&launch);
    if (status != orSuccess) {
      return raise(status);
    }
    Py_RETURN_NONE;
  }
};

// Its return type is the Launch of a function with these parameters. It is only declared.
template <auto Function, class... Parameters>
Launch<Function, std::index_sequence_for<Parameters...>, Parameters...> launch_of(void (*)(Parameters...));

// Returns the address that an attribute of `owner` contains as an integer, or null with a Python exception. Releases
// the reference to `owner`, which may be null with a Python exception.
void* take_address(PyObject* owner, const char* attribute) {
  PyObject* found = owner == nullptr ? nullptr : PyObject_GetAttrString(owner, attribute);
  Py_XDECREF(owner);
  void* address = found == nullptr ? nullptr : PyLong_AsVoidPtr(found);
  Py_XDECREF(found);
  return address;
}

// Sets `process`. Returns false with a Python exception if a symbol is missing.
bool look_up_process() {
  PyObject* runtime = PyImport_ImportModule("openreg_runtime");
  PyObject* table =
      runtime == nullptr ? nullptr : PyObject_CallMethod(runtime, "launch_entry", "i", OPENREG_LAUNCH_ENTRY_VERSION);
  Py_XDECREF(runtime);
  void* entry = take_address(table, "address");
  if (entry == nullptr) {
    return false;
  }
  PyObject* guards = PyImport_ImportModule("torch._C._dynamo.guards");
  void* data = take_address(guards, "_torchinductor_pyobject_tensor_data_ptr");
  PyObject* torch = data == nullptr ? nullptr : PyImport_ImportModule("torch");
  if (torch == nullptr) {
    return false;
  }
  process.entry = static_cast<const orLaunchEntry*>(entry);
  process.tensor_data = reinterpret_cast<void* (*)(PyObject*)>(data);
  process.accelerator_error = PyObject_GetAttrString(torch, "AcceleratorError");
  Py_DECREF(torch);
  PyObject* kernels = process.accelerator_error == nullptr ? nullptr : PyImport_ImportModule("openreg_compile.kernels");
  process.extent = kernels == nullptr ? nullptr : PyObject_GetAttrString(kernels, "extent");
  Py_XDECREF(kernels);
  return process.extent != nullptr;
}

// Returns the module, or null with a Python exception. The module has one function, `kernel`.
template <auto Function>
PyObject* make_module(const char* name, const char* kinds) {
  using TheLaunch = decltype(launch_of<Function>(Function));
  TheLaunch::name = name;
  TheLaunch::kinds = kinds;
  // The cast goes over another function type, because a function of METH_FASTCALL does not have the type PyCFunction.
  static PyMethodDef methods[] = {
      {"kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&TheLaunch::call)), METH_FASTCALL, name},
      {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef definition{};
  definition.m_base = PyModuleDef_HEAD_INIT;
  definition.m_name = "kernel";
  definition.m_size = -1;
  definition.m_methods = methods;
  return look_up_process() ? PyModule_Create(&definition) : nullptr;
}

}  // namespace

}  // namespace openreg::compile

// Defines the module's initialization. It follows the source of the kernel. `kernel_name` is shown in errors and
// profiles. `argument_kinds` has a letter (d, h or n, see read()) for each parameter.
#define OPENREG_KERNEL(kernel_name, argument_kinds)                               \
  PyMODINIT_FUNC PyInit_kernel() {                                                \
    return ::openreg::compile::make_module<&kernel>(kernel_name, argument_kinds); \
  }
