/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch entry: a table of C functions through which generated code launches its kernels.
 *
 * A compiler caches generated code on disk, and later processes load it. The code links nothing of this library: its
 * loader passes it the address of the table, which openreg_runtime.launch_entry() returns in Python. The compiler's
 * cache key must contain the version of the table, because a runtime rejects a version that it does not support.
 *
 * Every function is thread-safe, needs no GIL and throws no exception. Errors are the codes of openreg.h. The calling
 * thread can read a text for its last error.
 */
#pragma once

#include <stddef.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the two structures below; there is only one so far. */
#define OPENREG_LAUNCH_ENTRY_VERSION 1

/* The largest size and the largest alignment of a launch's arguments, in bytes. */
#define OPENREG_MAX_LAUNCH_ARGUMENTS 1048576
#define OPENREG_MAX_LAUNCH_ALIGNMENT 4096

/* One launch: the stream, the kernel and its arguments. */
typedef struct orLaunch {
  size_t size; /* sizeof(orLaunch), by which the runtime detects another layout */
  /* Null means the calling thread's current stream of `device`, which torch.openreg.current_stream() returns. */
  orStream_t stream;
  int device; /* -1: the calling thread's current device; read only if `stream` is null */
  /* The kernel's name in errors and for observers. It must stay valid until the kernel has run, or, in a capture, as
   * long as the graph. A string literal is valid as long as its library is loaded. */
  const char* name;
  /* The kernel. It runs on an engine thread with the settings of PyTorch's own kernels: without autograd, on
   * OPENREG_NUM_THREADS threads, and with denormal numbers flushed to zero if the launching thread flushes them. It
   * receives the launch's copy of the arguments. It follows the rules of orKernelFunction_t (openreg.h): it waits for
   * no other task, calls no function of the driver except orGetDevice(), and leaves its arguments as they were. Only
   * the rule about exceptions differs: it may throw, and then fails with the exception's text.
   */
  orKernelFunction_t function;
  const void* arguments;      /* copied, byte by byte, before the call returns; null if there are none */
  size_t arguments_size;      /* in bytes */
  size_t arguments_alignment; /* alignment of the copy in bytes: a power of two, or 0 for that of max_align_t */
  /* Memory that the kernel reads and writes, as in orLaunchKernelWithOperands(). Null means unknown. */
  const orOperand* operands;
  size_t operand_count;
} orLaunch;

/* The table. Valid until the process ends. */
typedef struct orLaunchEntry {
  size_t size; /* of the runtime's table, in bytes; a newer runtime may add members at its end */
  unsigned int version;
  /* Offset in bytes from a device address to its address in the kernel view, the mapping of device memory that kernels
   * dereference. */
  ptrdiff_t kernel_view_offset;
  /* Enqueues the kernel. Blocks while the stream's queue is full, and releases the GIL while it blocks. Returns
   * orErrorInvalidValue or orErrorInvalidDevice if a member of `launch` is invalid, orErrorUnknown inside a callback of
   * observe_memory() (memory_observer.h), and the errors of orLaunchKernel(). A capturing stream records the launch
   * with its copy of the arguments, which the graph owns, so the kernel must not change them. After Python was
   * finalized, the GIL cannot be acquired. A call that has released the GIL then does not return: its thread ends, or
   * sleeps until the process ends. */
  orError_t (*launch)(const orLaunch* launch);
  /* Returns 1 if observers, such as profilers, require operands, else 0, as orOperandsWanted() does. */
  int (*operands_wanted)(void);
  /* Returns the text (function, cause, remedy) of the calling thread's last failure in this table or in
   * orGetLaunchEntry(), or an empty text. Valid until the thread's next such failure. */
  const char* (*last_error_message)(void);
} orLaunchEntry;

/* Sets *entry to the table of a version. Initializes the device if necessary. Returns orErrorNotSupported if this
 * runtime does not support the version. After every failure *entry is null. */
OPENREG_RUNTIME_API orError_t orGetLaunchEntry(unsigned int version, const orLaunchEntry** entry);

/* Same as `last_error_message()` of the table, for callers that have no table yet. */
OPENREG_RUNTIME_API const char* orGetLaunchEntryMessage(void);

#ifdef __cplusplus
}
#endif
