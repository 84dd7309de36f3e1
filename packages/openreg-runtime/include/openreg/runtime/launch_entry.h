/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entry for generated code: a table in plain C through which it launches its kernels.
 *
 * What a compiler makes is kept and loaded again by processes to come. It links nothing of this library: who loads it
 * hands it the address of the table, in Python openreg_runtime.launch_entry(). The version of the table that the code
 * was made for belongs into the key of the compiler's cache; a runtime that does not serve it says so.
 *
 * Every function may be called from any thread, with or without the GIL of Python, and lets no exception out. Errors
 * are the codes of openreg.h, with a text for the calling thread.
 */
#pragma once

#include <stddef.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The newest version of the two structures below, and the only one so far. */
#define OPENREG_LAUNCH_ENTRY_VERSION 1

/* The largest block of arguments that a launch takes, in bytes, and its largest alignment. */
#define OPENREG_MAX_LAUNCH_ARGUMENTS 1048576
#define OPENREG_MAX_LAUNCH_ALIGNMENT 4096

/* What is launched. */
typedef struct orLaunch {
  size_t size; /* sizeof(orLaunch) */
  /* Null: the stream of `device` that is current for the calling thread, as torch.openreg.current_stream() gives it. */
  orStream_t stream;
  int device; /* -1: the calling thread's current one. Read only where `stream` is null. */
  /* Shown in errors and to observers. It has to stay where it is until the kernel has run, in a capture as long as the
   * graph: a literal of code that stays loaded, say. */
  const char* name;
  /* Runs on a thread of the device, whose state is that of PyTorch's kernels: as many threads as OPENREG_NUM_THREADS
   * says, small numbers as the launching thread takes them, no autograd. It gets the launch's own copy of the arguments
   * and holds to the rules of orKernelFunction_t, except that it may throw: that is a failure with the exception's
   * text.
   */
  orKernelFunction_t function;
  const void* arguments;      /* copied, byte by byte, before the call returns; null if there are none */
  size_t arguments_size;      /* in bytes */
  size_t arguments_alignment; /* of the copy: a power of two; 0: that of any C type */
  /* What the kernel reads and writes, as of orLaunchKernelWithOperands(); null: not told. */
  const orOperand* operands;
  size_t operand_count;
} orLaunch;

/* Valid for the life of the process. */
typedef struct orLaunchEntry {
  size_t size; /* of the runtime's table: a newer runtime may have more at its end */
  unsigned int version;
  /* What to add to an address of the device for the address that a kernel dereferences. */
  ptrdiff_t kernel_view_offset;
  /* Enqueues. While the stream's queue is full it blocks, without the GIL and with the errors of orLaunchKernel(). A
   * capturing stream records the launch with its copy of the arguments, which the graph then owns: the kernel leaves
   * them as it found them. At the shutdown of Python the GIL may not come back: then the calling thread ends here, or
   * sleeps until the process has ended, as in any call that Python makes. */
  orError_t (*launch)(const orLaunch* launch);
  /* Whether operands are worth gathering: orOperandsWanted(). */
  int (*operands_wanted)(void);
  /* Text (function, cause, way out) of the calling thread's last failure in this table or in orGetLaunchEntry(); empty
   * if none. Valid until the thread's next such failure. */
  const char* (*last_error_message)(void);
} orLaunchEntry;

/* The table of a version. Starts the device if nobody has. orErrorNotSupported for a version that this runtime does not
 * serve; then, as after every failure, *entry is null. */
OPENREG_RUNTIME_API orError_t orGetLaunchEntry(unsigned int version, const orLaunchEntry** entry);

/* The function of that name in the table, for who has no table yet. */
OPENREG_RUNTIME_API const char* orGetLaunchEntryMessage(void);

#ifdef __cplusplus
}
#endif
