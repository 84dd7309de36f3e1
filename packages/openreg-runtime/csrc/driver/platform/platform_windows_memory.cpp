// SPDX-License-Identifier: BSD-3-Clause
// Memory services of Windows.
//
// The kernel view contains private and shared memory at addresses that the driver selects. Only placeholders (Windows
// 10 1803 and later) allow that: reserved ranges that are split, replaced by memory, and restored.
#include "platform/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace openreg::driver::platform {

namespace {

// Constants and functions of placeholders. They are repeated here and looked up at run time, because not every
// toolchain has them in its headers and import libraries.
constexpr ULONG kReplacePlaceholder = 0x4000;
constexpr ULONG kReservePlaceholder = 0x40000;
constexpr ULONG kCoalescePlaceholders = 0x1;
constexpr ULONG kPreservePlaceholder = 0x2;

using VirtualAlloc2Function = void*(WINAPI*)(HANDLE, void*, SIZE_T, ULONG, ULONG, void*, ULONG);
using MapViewOfFile3Function = void*(WINAPI*)(HANDLE, HANDLE, void*, ULONG64, SIZE_T, ULONG, ULONG, void*, ULONG);
using UnmapViewOfFile2Function = BOOL(WINAPI*)(HANDLE, void*, ULONG);

template <class Function>
Function look_up(const char* name) {
  const HMODULE library = GetModuleHandleW(L"kernelbase.dll");
  return library == nullptr ? nullptr
                            : reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(library, name)));
}

VirtualAlloc2Function virtual_alloc2() {
  static const auto function = look_up<VirtualAlloc2Function>("VirtualAlloc2");
  return function;
}

MapViewOfFile3Function map_view_of_file3() {
  static const auto function = look_up<MapViewOfFile3Function>("MapViewOfFile3");
  return function;
}

UnmapViewOfFile2Function unmap_view_of_file2() {
  static const auto function = look_up<UnmapViewOfFile2Function>("UnmapViewOfFile2");
  return function;
}

// Returns the mutex of all placeholders. Adjacent ranges lie in one placeholder until it is split, so only one thread
// at a time may split and merge.
std::mutex& placeholders() {
  static std::mutex only;
  return only;
}

// Turns exactly this range into one placeholder. The range lies in one or several placeholders without memory. The
// caller locks placeholders() until it has replaced the placeholder. Returns false on failure.
bool isolate_placeholder(char* address, size_t size) {
  char* const end = address + size;
  char* first = nullptr;
  char* last = address;
  int count = 0;
  while (last < end) {
    MEMORY_BASIC_INFORMATION info{};
    if (VirtualQuery(last, &info, sizeof(info)) == 0 || info.State != MEM_RESERVE) {
      return false;
    }
    if (count++ == 0) {
      first = static_cast<char*>(info.AllocationBase);
    }
    last = static_cast<char*>(info.BaseAddress) + info.RegionSize;
  }
  if (count > 1 && VirtualFree(first, static_cast<SIZE_T>(last - first), MEM_RELEASE | kCoalescePlaceholders) == 0) {
    return false;
  }
  const bool exact = first == address && last == end;
  return exact || VirtualFree(address, size, MEM_RELEASE | kPreservePlaceholder) != 0;
}

}  // namespace

void* reserve_inaccessible(size_t size) {
  return VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS);
}

void* reserve_accessible(size_t size) {
  if (virtual_alloc2() == nullptr || map_view_of_file3() == nullptr || unmap_view_of_file2() == nullptr) {
    return nullptr;  // the system is older than placeholders
  }
  return virtual_alloc2()(GetCurrentProcess(), nullptr, size, MEM_RESERVE | kReservePlaceholder, PAGE_NOACCESS, nullptr,
                          0);
}

bool commit(void* address, size_t size) noexcept {
  const std::lock_guard<std::mutex> lock(placeholders());
  return isolate_placeholder(static_cast<char*>(address), size) &&
         virtual_alloc2()(GetCurrentProcess(), address, size, MEM_RESERVE | MEM_COMMIT | kReplacePlaceholder,
                          PAGE_READWRITE, nullptr, 0) != nullptr;
}

void decommit(void* address, size_t size) noexcept {
  VirtualFree(address, size, MEM_RELEASE | kPreservePlaceholder);
}

void make_inaccessible(void* /*address*/, size_t /*size*/) noexcept {}  // a range without memory is a placeholder

void unreserve(void* address, size_t size) noexcept {
  // The kernel view may consist of several placeholders, which are released one by one.
  char* const end = static_cast<char*>(address) + size;
  for (auto* next = static_cast<char*>(address); next < end;) {
    MEMORY_BASIC_INFORMATION info{};
    if (VirtualQuery(next, &info, sizeof(info)) == 0) {
      return;
    }
    next = static_cast<char*>(info.BaseAddress) + info.RegionSize;
    if (info.State != MEM_FREE) {
      VirtualFree(info.AllocationBase, 0, MEM_RELEASE);
    }
  }
}

void* allocate_pages(size_t size) {
  return VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void free_pages(void* address, size_t /*size*/) noexcept {
  VirtualFree(address, 0, MEM_RELEASE);
}

namespace {

// The name of a shared object.
using SharedName = std::array<char, 64>;

// Writes the name of an object to `name`. Returns false if no process can have created an object with these numbers.
bool make_shared_name(uint64_t process, uint64_t number, SharedName& name) {
  if (process > MAXDWORD || number > MAXDWORD) {
    return false;
  }
  std::snprintf(name.data(), name.size(), "Local\\openreg.%lu.%lu", static_cast<unsigned long>(process),
                static_cast<unsigned long>(number));
  return true;
}

}  // namespace

// The object gets no security descriptor of its own, so the default one of its creator admits that user. Its length
// never changes.
bool create_shared(size_t size, SharedMemory& memory) {
  static std::atomic<DWORD> count{0};
  const DWORD number = count++;
  SharedName name;
  if (!make_shared_name(GetCurrentProcessId(), number, name)) {
    return false;
  }
  const HANDLE object = CreateFileMappingA(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE,
                                           static_cast<DWORD>(static_cast<uint64_t>(size) >> 32),
                                           static_cast<DWORD>(size & 0xffffffffU), name.data());
  if (object == nullptr) {
    return false;
  }
  if (GetLastError() == ERROR_ALREADY_EXISTS) {  // an earlier process had this number, and another still has it open
    CloseHandle(object);
    return false;
  }
  memory.object = reinterpret_cast<intptr_t>(object);
  memory.size = size;
  memory.number = number;
  memory.is_creator = true;
  return true;
}

bool open_shared(uint64_t process, uint64_t number, SharedMemory& memory) {
  SharedName name;
  if (!make_shared_name(process, number, name)) {
    return false;
  }
  const HANDLE object = OpenFileMappingA(FILE_MAP_ALL_ACCESS, FALSE, name.data());
  if (object == nullptr) {
    return false;
  }
  // The system reports the size of a mapped view only, not that of an object.
  MEMORY_BASIC_INFORMATION info{};
  void* view = MapViewOfFile(object, FILE_MAP_READ, 0, 0, 0);
  const bool known = view != nullptr && VirtualQuery(view, &info, sizeof(info)) != 0;
  if (view != nullptr) {
    UnmapViewOfFile(view);
  }
  if (!known) {
    CloseHandle(object);
    return false;
  }
  memory.object = reinterpret_cast<intptr_t>(object);
  memory.size = info.RegionSize;
  return true;
}

void close_shared(SharedMemory& memory) noexcept {
  if (memory.object != -1) {
    CloseHandle(reinterpret_cast<HANDLE>(memory.object));
    memory.object = -1;
  }
}

void* map_shared(const SharedMemory& memory, size_t offset, size_t size) {
  const auto start = static_cast<uint64_t>(offset);
  return MapViewOfFile(reinterpret_cast<HANDLE>(memory.object), FILE_MAP_ALL_ACCESS, static_cast<DWORD>(start >> 32),
                       static_cast<DWORD>(start & 0xffffffffU), size);
}

void unmap_shared(void* address, size_t /*size*/) noexcept {
  UnmapViewOfFile(address);
}

bool map_shared_at(const SharedMemory& memory, size_t offset, void* address, size_t size) noexcept {
  MEMORY_BASIC_INFORMATION info{};
  if (VirtualQuery(address, &info, sizeof(info)) == 0) {
    return false;
  }
  if (info.State == MEM_COMMIT) {
    decommit(address, size);
  }
  const std::lock_guard<std::mutex> lock(placeholders());
  return isolate_placeholder(static_cast<char*>(address), size) &&
         map_view_of_file3()(reinterpret_cast<HANDLE>(memory.object), GetCurrentProcess(), address, offset, size,
                             kReplacePlaceholder, PAGE_READWRITE, nullptr, 0) != nullptr;
}

void unmap_shared_at(void* address, size_t /*size*/) noexcept {
  unmap_view_of_file2()(GetCurrentProcess(), address, kPreservePlaceholder);
}

uint64_t process_id() {
  return GetCurrentProcessId();
}

}  // namespace openreg::driver::platform
