/* SPDX-License-Identifier: BSD-3-Clause */
/* What a compiler might make: kernels in C, and functions that launch them through the table which they are handed. It
 * is loaded by device/test_launch_entry.py, and linked with nothing of ours. */
#include <openreg.h>
#include <openreg/runtime/launch_entry.h>
#include <stdint.h>
#include <string.h>

static orLaunch describe(orStream_t stream, const char* name, orKernelFunction_t function, const void* arguments,
                         size_t size) {
  orLaunch launch = {0};
  launch.size = sizeof(launch);
  launch.stream = stream;
  launch.device = -1;
  launch.name = name;
  launch.function = function;
  launch.arguments = arguments;
  launch.arguments_size = size;
  return launch;
}

/* Adds a number to numbers; `calls` is of the host. */
struct add_arguments {
  int32_t* numbers;
  size_t length;
  int32_t number;
  int32_t* calls;
};

static orError_t add(void* arguments, char* message, size_t message_size) {
  const struct add_arguments* given = arguments;
  (void)message;
  (void)message_size;
  for (size_t i = 0; i < given->length; ++i) {
    given->numbers[i] += given->number;
  }
  ++*given->calls;
  return orSuccess;
}

/* `address` is one of the device. The block is overwritten as soon as the launch returns. */
orError_t launch_add(const orLaunchEntry* entry, orStream_t stream, char* address, size_t length, int32_t number,
                     int32_t* calls) {
  struct add_arguments arguments = {(int32_t*)(address + entry->kernel_view_offset), length, number, calls};
  orOperand operand = {address, length * sizeof(int32_t), orAccessReadWrite};
  orLaunch launch = describe(stream, "add", &add, &arguments, sizeof(arguments));
  if (entry->operands_wanted() != 0) {
    launch.operands = &operand;
    launch.operand_count = 1;
  }
  const orError_t status = entry->launch(&launch);
  memset(&arguments, 0xFF, sizeof(arguments));
  memset(&operand, 0xFF, sizeof(operand));
  memset(&launch, 0xFF, sizeof(launch));
  return status;
}

static orError_t count(void* arguments, char* message, size_t message_size) {
  (void)message;
  (void)message_size;
  ++**(int64_t**)arguments;
  return orSuccess;
}

/* One call, in which nothing but a launch that waits can give the GIL away. */
orError_t launch_many(const orLaunchEntry* entry, orStream_t stream, int64_t* calls, int launches) {
  orError_t status = orSuccess;
  for (int i = 0; i < launches && status == orSuccess; ++i) {
    const orLaunch launch = describe(stream, "count", &count, &calls, sizeof(calls));
    status = entry->launch(&launch);
  }
  return status;
}

/* Where the copy of the arguments lies, and what is in it. */
struct place {
  uintptr_t address;
  unsigned char first;
  unsigned char last;
};

static orError_t look(void* arguments, char* message, size_t message_size) {
  struct {
    struct place* place;
    size_t size;
  } head;
  memcpy(&head, arguments, sizeof(head));
  (void)message;
  (void)message_size;
  head.place->address = (uintptr_t)arguments;
  head.place->first = ((unsigned char*)arguments)[sizeof(head)];
  head.place->last = ((unsigned char*)arguments)[head.size - 1];
  return orSuccess;
}

orError_t launch_look(const orLaunchEntry* entry, const void* arguments, size_t size, size_t alignment) {
  orLaunch launch = describe(NULL, "look", &look, arguments, size);
  launch.arguments_alignment = alignment;
  return entry->launch(&launch);
}

orError_t launch_on_device(const orLaunchEntry* entry, int device, int64_t* calls) {
  orLaunch launch = describe(NULL, "here", &count, &calls, sizeof(calls));
  launch.device = device;
  return entry->launch(&launch);
}

static orError_t fail(void* arguments, char* message, size_t message_size) {
  strncpy(message, arguments == NULL ? "no arguments" : "arguments", message_size - 1);
  return orErrorInvalidValue;
}

orError_t launch_fail(const orLaunchEntry* entry, orStream_t stream) {
  const orLaunch launch = describe(stream, "fails", &fail, NULL, 0);
  return entry->launch(&launch);
}

/* Halves the smallest normal number: not zero, unless small numbers are taken for it. */
static orError_t halve(void* arguments, char* message, size_t message_size) {
  volatile float smallest = 1.17549435e-38F;
  (void)message;
  (void)message_size;
  **(float**)arguments = smallest * 0.5F;
  return orSuccess;
}

orError_t launch_halve(const orLaunchEntry* entry, float* result) {
  const orLaunch launch = describe(NULL, "halve", &halve, &result, sizeof(result));
  return entry->launch(&launch);
}

/* A launch with one thing wrong. */
orError_t launch_wrong(const orLaunchEntry* entry, const char* what, orStream_t stream) {
  int64_t calls = 0;
  int64_t* counter = &calls;
  const orOperand operand = {NULL, 8, orAccessRead};
  orLaunch launch = describe(stream, "wrong", &count, &counter, sizeof(counter));
  if (strcmp(what, "null") == 0) {
    return entry->launch(NULL);
  }
  if (strcmp(what, "size") == 0) {
    launch.size = 8;
  } else if (strcmp(what, "name") == 0) {
    launch.name = NULL;
  } else if (strcmp(what, "function") == 0) {
    launch.function = NULL;
  } else if (strcmp(what, "arguments") == 0) {
    launch.arguments = NULL;
  } else if (strcmp(what, "arguments_size") == 0) {
    launch.arguments_size = OPENREG_MAX_LAUNCH_ARGUMENTS + 1;
  } else if (strcmp(what, "negative size") == 0) {
    launch.arguments_size = (size_t)-1;
  } else if (strcmp(what, "alignment") == 0) {
    launch.arguments_alignment = 24;
  } else if (strcmp(what, "large alignment") == 0) {
    launch.arguments_alignment = 2 * OPENREG_MAX_LAUNCH_ALIGNMENT;
  } else if (strcmp(what, "device") == 0) {
    launch.device = 99;
  } else if (strcmp(what, "negative device") == 0) {
    launch.device = -2;
  } else if (strcmp(what, "operands") == 0) {
    launch.operands = &operand;
    launch.operand_count = 1;
  }
  return entry->launch(&launch);
}

/* A kernel that the caller has. */
orError_t launch_function(const orLaunchEntry* entry, orKernelFunction_t function) {
  const orLaunch launch = describe(NULL, "given", function, NULL, 0);
  return entry->launch(&launch);
}
