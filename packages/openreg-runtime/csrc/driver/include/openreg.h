/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C API of the simulated accelerators, for C, C++ and ctypes; it needs no PyTorch. A device has its own memory,
 * which the host cannot dereference, and executes tasks asynchronously. A function that "enqueues" appends a task to a
 * stream and returns before the task is executed.
 *
 * These contracts hold for every function:
 *   - Result: a function returns orSuccess or the cause of its failure, and changes nothing if it rejects an argument.
 *     orErrorInvalidValue rejects null. The thread's last failure is kept for orGetLastError(), its text (function,
 *     device, limit, remedy) for orGetLastErrorMessage(). No exception leaves a function.
 *   - Threads: every function is thread-safe. The current device, the last failure and the flag of
 *     orThreadSetProgress() belong to the calling thread.
 *   - Blocking: a function blocks if its comment states it, and in three further cases. Functions that enqueue block
 *     while the stream holds 16384 tasks. With OPENREG_LAUNCH_BLOCKING, kernels, copies, fills and graphs block until
 *     they are complete. While tasks are deferred (OPENREG_SCHEDULE_SEED, orSubscribeTime), functions that enqueue or
 *     query may block to run some. In a kernel, a call that has to block returns orErrorNotSupported.
 *   - Units: sizes are in bytes. Times of events and observers are in nanoseconds of the clock of events. That is the
 *     steady clock, with OPENREG_SCHEDULE_SEED the schedule's clock, and with orSubscribeTime simulated time.
 *   - Handles: streams, events, graphs, semaphores and subscriptions are opaque values, never addresses. A destroyed or
 *     foreign handle is rejected with orErrorInvalidResourceHandle.
 *   - Fork: in a child of a process that used the device, every call returns orErrorForkedChild. Exceptions: releases
 *     (orFree, orFreeHost, orStreamDestroy, orEventDestroy, orGraphDestroy, orSemaphoreDestroy, orUnsubscribe,
 *     orIpcCloseMemHandle) do nothing and succeed. What needs no device works as before: errors, versions,
 *     orDriverIsUsable(), orThreadSetProgress(), orOperandsWanted(), orSetEnqueueHook(), orRegisterFaultKind(),
 *     orGetEngineCount(), and the count, properties, peers, priorities and current index of devices.
 *   - Exit: the process completes tasks in execution (Windows ends their threads) and drops those still queued. Calls
 *     that were blocked on these, and calls from then on, behave as in a forked child, with orErrorDeinitialized.
 *   - Asynchronous errors: a kernel that fails puts the device into a sticky error state. So does a semaphore that
 *     fails while a stream waits for it. Later tasks are skipped. Calls that enqueue on the device, query or
 *     synchronize return orErrorLaunchFailure until orDeviceReset(), or orErrorDeviceLost if the device is lost.
 *   - Capture: between orStreamBeginCapture() and orStreamEndCapture() tasks are recorded, not executed. A call that
 *     needs the result of a recorded task returns orErrorStreamCaptureUnsupported and invalidates the capture. A call
 *     that blocked on a full stream returns it, without effect, if a capture of the stream began or ended meanwhile.
 */
#ifndef OPENREG_H_
#define OPENREG_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(OPENREG_BUILD_DRIVER)
#define OPENREG_API __declspec(dllexport)
#else
#define OPENREG_API __declspec(dllimport)
#endif
#else
#define OPENREG_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: major * 1000 + minor. */
#define OPENREG_API_VERSION 1006
/* The greatest value of OPENREG_DEVICE_COUNT. */
#define OPENREG_MAX_DEVICES 64

typedef enum orError_t {
  orSuccess = 0,
  orErrorUnknown = 1,                   /* a failure of the host system that no other code describes */
  orErrorNotReady = 2,                  /* not a failure: tasks are not complete, or the call would block */
  orErrorInvalidValue = 3,              /* an argument is null, out of range, or does not fit the others */
  orErrorMemoryAllocation = 4,          /* the capacity of the device, or host memory, is exhausted */
  orErrorInvalidDevice = 5,             /* the device index is out of range */
  orErrorInvalidResourceHandle = 6,     /* the stream, event, graph, ... does not exist or was destroyed */
  orErrorInvalidDevicePointer = 7,      /* the device has not allocated the address, or has freed it */
  orErrorInvalidMemcpyDirection = 8,    /* the kind of copy does not fit its addresses */
  orErrorInvalidConfiguration = 9,      /* an environment variable has an invalid value */
  orErrorLaunchFailure = 10,            /* an earlier task failed; sticky until orDeviceReset() */
  orErrorForkedChild = 11,              /* the device was used before fork() and cannot be used in the child */
  orErrorDeinitialized = 12,            /* the process is exiting */
  orErrorNotSupported = 13,             /* meaningful, but not on this device or on this thread */
  orErrorDeviceLost = 14,               /* the device is unusable until the process ends (fault injection) */
  orErrorStreamCaptureUnsupported = 15, /* the call cannot be part of a capture, or conflicts with one */
  orErrorStreamCaptureInvalidated = 16, /* an earlier call invalidated the capture, which can only be ended */
  orErrorIllegalState = 17              /* the stream or semaphore is not in the state that the call requires */
} orError_t;

/* The direction of a copy; orMemcpyDefault infers it from the addresses. */
typedef enum orMemcpyKind {
  orMemcpyHostToHost = 0,
  orMemcpyHostToDevice = 1,
  orMemcpyDeviceToHost = 2,
  orMemcpyDeviceToDevice = 3,
  orMemcpyDefault = 4
} orMemcpyKind;

typedef enum orMemoryType {
  orMemoryTypeUnmanaged = 0, /* any other memory, such as ordinary (pageable) host memory */
  orMemoryTypeHost = 1,      /* pinned host memory from orMallocHost() */
  orMemoryTypeDevice = 2     /* device memory from orMalloc() or orIpcOpenMemHandle() */
} orMemoryType;

typedef struct orPointerAttributes {
  orMemoryType type;
  int device;    /* owner of device memory; -1 for other memory */
  void* pointer; /* the address as passed */
} orPointerAttributes;

typedef enum orEventFlags {
  orEventDisableTiming = 0x0, /* the default: only orders tasks, and recording it enqueues no task */
  orEventEnableTiming = 0x1   /* also carries a time, for orEventElapsedTime() */
} orEventFlags;

typedef struct orDeviceProp {
  char name[64];
  size_t totalGlobalMem;   /* capacity in bytes */
  int multiProcessorCount; /* host cores that kernels may use */
  int major;               /* API version, major part */
  int minor;               /* API version, minor part */
} orDeviceProp;

/* The counters of a device since the process started or since orDeviceReset(). */
typedef struct orDeviceStats {
  uint64_t launches;         /* executed kernels */
  uint64_t copies;           /* executed copies and fills */
  uint64_t bytes_copied;     /* by those copies and fills */
  uint64_t busy_nanoseconds; /* time for which engines executed its tasks, up to now, of the steady clock */
  size_t allocated_bytes;    /* device memory in use now */
  size_t peak_allocated_bytes;
} orDeviceStats;

/* The counters of a stream since it was created. */
typedef struct orStreamStats {
  uint64_t launches;
  uint64_t copies;
  uint64_t bytes_copied;
  uint64_t busy_nanoseconds; /* time for which engines executed its tasks, up to now, of the steady clock */
  uint64_t submitted;        /* enqueued tasks of all kinds, waits, delays and timestamps included */
  uint64_t completed;        /* complete tasks among them */
} orStreamStats;

/* The counters of an engine (see orGetEngineCount()) since the process started. */
typedef struct orEngineStats {
  char name[32];             /* "compute" or "copy" */
  uint64_t tasks;            /* kernels, copies, fills and host functions that it executed, of all devices */
  uint64_t busy_nanoseconds; /* time for which it executed them, up to now, of the steady clock */
} orEngineStats;

typedef enum orStreamCaptureStatus {
  orStreamCaptureStatusNone = 0,
  orStreamCaptureStatusActive = 1,
  orStreamCaptureStatusInvalidated = 2
} orStreamCaptureStatus;

/* The threads whose blocking calls on a device with a capturing stream return orErrorStreamCaptureUnsupported. These
 * calls are orDeviceSynchronize(), orDeviceReset(), orMemcpy(), orMemcpyPeer(), orMemset(), orFree(), orFreeHost(),
 * orIpcGetMemHandle() and orIpcCloseMemHandle(). They do not invalidate the capture. */
typedef enum orStreamCaptureMode {
  orStreamCaptureModeGlobal = 0,      /* all threads */
  orStreamCaptureModeThreadLocal = 1, /* the thread that began the capture */
  orStreamCaptureModeRelaxed = 2      /* no thread */
} orStreamCaptureMode;

/* Identifies an allocation to other processes. Plain bytes, which may be sent through a pipe. */
typedef struct orIpcMemHandle_t {
  char reserved[128];
} orIpcMemHandle_t;

typedef struct orGraph* orGraph_t;
typedef struct orStream* orStream_t; /* NULL is the default stream of the calling thread's current device */
typedef struct orEvent* orEvent_t;
typedef struct orSemaphore* orSemaphore_t;
typedef struct orSubscription* orSubscription_t;

/* ---- Errors ------------------------------------------------------------------------------------------------- */

/* Return the name of a code, such as "orErrorInvalidDevice", and a description, in static storage. Never fail. */
OPENREG_API const char* orGetErrorName(orError_t error);
OPENREG_API const char* orGetErrorString(orError_t error);
/* Return the calling thread's last failure. The first function clears it; the sticky error of a device stays. */
OPENREG_API orError_t orGetLastError(void);
OPENREG_API orError_t orPeekAtLastError(void);
/* Returns the text of the calling thread's last failure, cleared or not, or "". Valid until its next failing call. */
OPENREG_API const char* orGetLastErrorMessage(void);

/* ---- Devices ------------------------------------------------------------------------------------------------ */

/* Writes the number of devices (OPENREG_DEVICE_COUNT, default 2). Does not initialize the devices. */
OPENREG_API orError_t orGetDeviceCount(int* count);
/* Write and set the current device of the calling thread, which is 0 in a new thread. */
OPENREG_API orError_t orGetDevice(int* device);
OPENREG_API orError_t orSetDevice(int device);
/* Write the properties and the counters of a device. The first does not initialize the devices. */
OPENREG_API orError_t orGetDeviceProperties(orDeviceProp* properties, int device);
OPENREG_API orError_t orDeviceGetStats(orDeviceStats* stats, int device);
/* Blocks until all tasks that were enqueued on the current device before the call are complete. */
OPENREG_API orError_t orDeviceSynchronize(void);
/* Blocks as orDeviceSynchronize() does, then clears the current device's sticky error and counters. What skipped
 * kernels should have written is undefined. Events recorded after skipped tasks return orErrorLaunchFailure until they
 * are recorded again. On a healthy device the call also blocks on semaphore waits, which orSemaphoreFail() ends. */
OPENREG_API orError_t orDeviceReset(void);
/* Writes the percentage, 0 to 100, of the past second in which engines executed tasks of the device (source: NVML). */
OPENREG_API orError_t orDeviceGetUtilization(int* percent, int device);
/* Writes the number of engines, which serve all devices. */
OPENREG_API orError_t orGetEngineCount(int* count);
/* Writes the counters of an engine. Returns orErrorInvalidValue unless 0 <= `engine` < orGetEngineCount(). */
OPENREG_API orError_t orEngineGetStats(orEngineStats* stats, int engine);
/* Returns the sticky error of a device, orErrorLaunchFailure or orErrorDeviceLost, and orSuccess if it has none. */
OPENREG_API orError_t orDeviceGetError(int device);
/* Writes the range for orStreamCreateWithPriority(). Engines serve streams with a lower number first. */
OPENREG_API orError_t orDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority);
/* Writes 1 if tasks of `device` may address memory of `peer`, as is the case for any two different devices, else 0. */
OPENREG_API orError_t orDeviceCanAccessPeer(int* canAccess, int device, int peer);
/* Arms faults in place of those armed before and counts from the start; null or "" disarms all. The format is that of
 * OPENREG_FAULTS: a comma-separated list of KIND:N or KIND:N@DEVICE, where KIND is one of
 *   alloc   the N-th orMalloc() fails with orErrorMemoryAllocation
 *   copy    the N-th copy or fill fails when it is executed, as a kernel does
 *   launch  the N-th kernel fails when it is its turn, without being executed
 *   lose    the device is lost when its N-th kernel, copy or fill is about to be executed
 * or of those that orRegisterFaultKind() has added. N counts from 1, over all devices unless one is named; each fault
 * happens once. Returns orErrorInvalidValue for a malformed list, and leaves the armed faults unchanged. */
OPENREG_API orError_t orSetFaults(const char* specification);
/* Adds a kind of fault for a library above the driver and writes its number, also if the name exists. OPENREG_FAULTS
 * and orSetFaults() accept the name from then on. Call it when the library is loaded, because the first use of a device
 * rejects unknown names. Returns orErrorInvalidValue after 32 names, and for characters other than a to z and _. */
OPENREG_API orError_t orRegisterFaultKind(int* kind, const char* name);
/* Counts one operation of a registered kind on a device. Writes 1 if it must fail, else 0. Cheap if none is armed. */
OPENREG_API orError_t orCountForFault(int kind, int device, int* mustFail);
/* Returns 0 in a forked child of a process that used the device, and while the process exits, else 1. Release paths
 * must do nothing after 0. Takes no lock and never fails. */
OPENREG_API int orDriverIsUsable(void);
/* Writes the version of the loaded library: OPENREG_API_VERSION of its build. */
OPENREG_API orError_t orDriverGetVersion(int* version);

/* ---- Memory ------------------------------------------------------------------------------------------------- */

/* Allocates memory of the current device, aligned to 4 KiB, with undefined content (0xFF with OPENREG_POISON=1). An
 * access by the host faults. Writes null for size 0. Owned by the caller until orFree(). */
OPENREG_API orError_t orMalloc(void** devPtr, size_t size);
/* Blocks until all tasks of the owning device are complete, then frees an allocation of orMalloc(). May be null. */
OPENREG_API orError_t orFree(void* devPtr);
/* Allocates pinned host memory, aligned to 4 KiB, for asynchronous copies. Owned by the caller until orFreeHost(). */
OPENREG_API orError_t orMallocHost(void** hostPtr, size_t size);
/* Blocks until all tasks of all devices are complete, then frees an allocation of orMallocHost(). May be null. */
OPENREG_API orError_t orFreeHost(void* hostPtr);
/* Writes the bytes of the current device that can still be allocated, and its capacity. */
OPENREG_API orError_t orMemGetInfo(size_t* free, size_t* total);
/* Writes type and owner of the memory at an address. Any address is valid, even one that was freed. */
OPENREG_API orError_t orPointerGetAttributes(orPointerAttributes* attributes, const void* ptr);
/* Writes start and size, rounded up to pages, of the allocation or import that contains a device address. Returns
 * orErrorInvalidDevicePointer if there is none. */
OPENREG_API orError_t orMemGetAddressRange(void** base, size_t* size, const void* devPtr);
/* Writes the distance from any device address to its address in the kernel view, which kernels dereference.
 * REAL HW: a kernel runs on the device and dereferences the device address itself. */
OPENREG_API orError_t orGetKernelViewOffset(ptrdiff_t* offset);

/* Copies `count` bytes on the default stream of the current device, and blocks until the copy is complete. Returns
 * orErrorInvalidDevicePointer if a range of device memory does not lie inside one allocation, and
 * orErrorInvalidMemcpyDirection if `kind` does not fit the addresses. */
OPENREG_API orError_t orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind);
/* Enqueues a copy; fails as orMemcpy() does. Pinned memory must stay allocated and unchanged until the copy is
 * complete. With pageable host memory the call may block: it reads a source, and writes a destination, before it
 * returns. A capturing stream rejects it with orErrorStreamCaptureUnsupported, which invalidates the capture. */
OPENREG_API orError_t orMemcpyAsync(void* dst, const void* src, size_t count, orMemcpyKind kind, orStream_t stream);
/* Same as orMemcpyAsync() from the device to the host, except that it copies before it returns, or does nothing and
 * returns orErrorNotReady: for more than 4096 bytes, while a task of the stream is not complete, while copies are
 * recorded, observed, deferred or made to fail, and on a failed device. Other errors take precedence. */
OPENREG_API orError_t orTryMemcpyToHost(void* dst, const void* src, size_t count, orStream_t stream);
/* Same as orMemsetAsync() on the current device's default stream, except that it blocks until the fill is complete. */
OPENREG_API orError_t orMemset(void* devPtr, int value, size_t count);
/* Enqueues a fill of device memory, inside one allocation, with the low byte of `value`. */
OPENREG_API orError_t orMemsetAsync(void* devPtr, int value, size_t count, orStream_t stream);
/* Same as orMemcpy() and orMemcpyAsync() from device to device, except that the two devices must own the ranges. */
OPENREG_API orError_t orMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count);
OPENREG_API orError_t orMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                        orStream_t stream);

/* ---- Memory of other processes ------------------------------------------------------------------------------ */

/* Writes a handle, always the same one, by which processes of the same user and machine can open the allocation that
 * starts at `devPtr`. Blocks until all tasks of the owning device, and those in execution for others, are complete. The
 * caller still owns the allocation; its address, content and share of the capacity stay. The handle, and an open file,
 * last until orFree() or the end of this process. A process that has opened the handle keeps the bytes. The first call
 * moves them: what another thread than an engine's writes to them through the kernel view meanwhile may be lost. */
OPENREG_API orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* devPtr);
/* Maps the allocation of another process on the current device, again at each call. Both processes access the same
 * bytes, and nothing orders their tasks: synchronize before you send the handle. Imports take no capacity, and may
 * together be as large as that of the device. Owned by the caller until orIpcCloseMemHandle(). Returns
 * orErrorInvalidValue for a handle that is damaged, of this process, or freed. `flags` must be 0. */
OPENREG_API orError_t orIpcOpenMemHandle(void** devPtr, orIpcMemHandle_t handle, unsigned int flags);
/* Blocks until all tasks of the device are complete, then unmaps an import, which orFree() rejects. */
OPENREG_API orError_t orIpcCloseMemHandle(void* devPtr);

/* ---- Streams ------------------------------------------------------------------------------------------------ */

/* Creates a stream of the current device, which costs no thread. Owned by the caller until orStreamDestroy(). */
OPENREG_API orError_t orStreamCreate(orStream_t* stream);
/* Same as orStreamCreate(), except that the priority is `priority`, clamped to the range. `flags` must be 0. */
OPENREG_API orError_t orStreamCreateWithPriority(orStream_t* stream, unsigned int flags, int priority);
/* Writes a device's default stream, valid with any current device. It synchronizes with no other stream. */
OPENREG_API orError_t orDeviceGetDefaultStream(orStream_t* stream, int device);
/* Destroys the handle at once; tasks already enqueued are still executed. Returns orErrorInvalidResourceHandle for a
 * default stream, and orErrorStreamCaptureUnsupported for a capturing one. */
OPENREG_API orError_t orStreamDestroy(orStream_t stream);
/* Returns orSuccess if all tasks enqueued so far are complete, orErrorNotReady otherwise. */
OPENREG_API orError_t orStreamQuery(orStream_t stream);
/* Blocks until all tasks enqueued so far are complete. */
OPENREG_API orError_t orStreamSynchronize(orStream_t stream);
/* Enqueues a wait: later tasks of the stream start after those that `event` stands for at this call, on any device.
 * Enqueues nothing if these are complete or the event was never recorded. `flags` must be 0. */
OPENREG_API orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event, unsigned int flags);
/* Write the priority, the device and the counters of a stream. */
OPENREG_API orError_t orStreamGetPriority(orStream_t stream, int* priority);
OPENREG_API orError_t orStreamGetDevice(orStream_t stream, int* device);
OPENREG_API orError_t orStreamGetStats(orStream_t stream, orStreamStats* stats);

/* ---- Events ------------------------------------------------------------------------------------------------- */

/* Create an event, without timing or with one of orEventFlags. Owned by the caller until orEventDestroy(). */
OPENREG_API orError_t orEventCreate(orEvent_t* event);
OPENREG_API orError_t orEventCreateWithFlags(orEvent_t* event, unsigned int flags);
/* Destroys the handle at once; waits that were enqueued for the event remain. */
OPENREG_API orError_t orEventDestroy(orEvent_t event);
/* Records the event, which then stands for all tasks enqueued on the stream so far, and no longer for those of an
 * earlier record. Enqueues a task only if the event has timing, so it does not block otherwise. */
OPENREG_API orError_t orEventRecord(orEvent_t event, orStream_t stream);
/* Returns orSuccess if the recorded tasks are complete or nothing was recorded, orErrorNotReady otherwise. */
OPENREG_API orError_t orEventQuery(orEvent_t event);
/* Blocks until the recorded tasks are complete. Returns at once if nothing was recorded. */
OPENREG_API orError_t orEventSynchronize(orEvent_t event);
/* Writes the time between two records on one device, in milliseconds. Returns orErrorNotReady until both are complete,
 * and orErrorInvalidValue if an event has no timing or no record, or their devices differ. */
OPENREG_API orError_t orEventElapsedTime(float* milliseconds, orEvent_t start, orEvent_t end);

/* ---- Semaphores ---------------------------------------------------------------------------------------------- */

/* Creates a timeline semaphore with a first value: a 64-bit counter of the process that only grows. Owned by the caller
 * until orSemaphoreDestroy(). A stream waits until it has reached a value, which any thread may signal. So a stream
 * waits for something outside of the device, such as a message, while no engine and no host thread blocks.
 *   - A wait ends at once on a failed or lost device, fails after orSemaphoreFail(), and is dropped at process exit.
 *   - With OPENREG_LAUNCH_BLOCKING, a task behind a wait blocks the thread that enqueues it until the wait ends.
 *   - With OPENREG_SCHEDULE_SEED, the time of a signal must not change the order of tasks. So a signal takes effect
 *     only when no task can run, for one wait: the earliest orStreamWaitSemaphore() call that blocks a host thread.
 *     Other signals are kept until then, or until that wait has had none for OPENREG_SCHEDULE_TIMEOUT, so that no
 *     program blocks forever. A query blocks like a wait after 64 queries in a row that ran nothing. */
OPENREG_API orError_t orSemaphoreCreate(orSemaphore_t* semaphore, uint64_t value);
/* Destroys a semaphore. Returns orErrorIllegalState while a stream holds a wait for it. */
OPENREG_API orError_t orSemaphoreDestroy(orSemaphore_t semaphore);
/* Raises the value, so that streams that wait for it or a lower one continue. The current value changes nothing.
 * Returns orErrorInvalidValue for a lower one, and orErrorIllegalState after orSemaphoreFail(). */
OPENREG_API orError_t orSemaphoreSignal(orSemaphore_t semaphore, uint64_t value);
/* Declares that no further value follows. Streams that wait for one, now or later, put their devices into the sticky
 * error state, as a failing kernel does. Values already reached stay reached. `status` is any code of a failure;
 * `message` is the reason, and may be null. Returns orErrorIllegalState if the semaphore has failed before. */
OPENREG_API orError_t orSemaphoreFail(orSemaphore_t semaphore, orError_t status, const char* message);
/* Writes the value that was signaled last, also if it returns orErrorIllegalState because the semaphore has failed. */
OPENREG_API orError_t orSemaphoreGetValue(orSemaphore_t semaphore, uint64_t* value);
/* Enqueues a wait: later tasks of the stream start after the semaphore has reached `value`. Enqueues nothing if it has.
 * On a capturing stream returns orErrorStreamCaptureUnsupported and invalidates the capture. */
OPENREG_API orError_t orStreamWaitSemaphore(orStream_t stream, orSemaphore_t semaphore, uint64_t value);
/* Makes the calling thread a progress thread (1), which drives communication, or an ordinary one (0, the default). With
 * OPENREG_SCHEDULE_SEED, its waits and queries run no tasks until all ordinary threads were inactive for
 * OPENREG_SCHEDULE_TIMEOUT, because other processes decide their time. Waits of ordinary threads may end them. */
OPENREG_API orError_t orThreadSetProgress(int progress);

/* ---- Tasks -------------------------------------------------------------------------------------------------- */

/* A kernel, which an engine calls. Returns orSuccess, or any other code after writing a zero-terminated reason of at
 * most `message_size` bytes. Must not throw, wait for other tasks, or call this API except orGetDevice(), which writes
 * the stream's device. Must leave `state` as it was, because a replay of a graph calls the kernel again. */
typedef orError_t (*orKernelFunction_t)(void* state, char* message, size_t message_size);
typedef void (*orReleaseFunction_t)(void* state);

typedef struct orKernel {
  const char* name; /* for error messages; valid until the kernel is complete (a literal, for example) */
  orKernelFunction_t function;
  void* state; /* argument of `function` */
  /* Called once, on any thread, when `state` is no longer needed, also if the kernel was skipped. Not called for a
   * kernel that process exit drops. Must not call this API. May be null. */
  orReleaseFunction_t release;
} orKernel;

/* Enqueues a kernel. Takes ownership of `state` only if the call succeeds. With OPENREG_LAUNCH_BLOCKING, a kernel that
 * fails makes the call fail, so that the caller still owns `state`. */
OPENREG_API orError_t orLaunchKernel(orStream_t stream, const orKernel* kernel);
/* How a task accesses an operand. */
typedef enum orAccess { orAccessRead = 1, orAccessWrite = 2, orAccessReadWrite = 3 } orAccess;

/* A range of memory that a task reads or writes: device addresses as from orMalloc(), or host memory. */
typedef struct orOperand {
  const void* address;
  size_t size; /* in bytes; from the first byte to the last if the operand has gaps */
  orAccess access;
} orOperand;

/* Returns 1 if an observer uses the operands of launches, or a capture records them for observers of its replays, else
 * 0. After 1 the caller should call orLaunchKernelWithOperands(). Takes no lock and never fails. */
OPENREG_API int orOperandsWanted(void);
typedef void (*orEnqueueHook_t)(void);
/* Sets the process's only enqueue hook, or removes it if null. A thread calls the hook before it enqueues a copy, a
 * fill, a graph, or a kernel after orOperandsWanted() returned 1. It holds no lock of the device then, so the hook may
 * acquire Python's GIL, for example to capture the stack that `submit` cannot. The hook must neither throw nor call
 * this API. A call of the previous one may last longer. Needs no device. */
OPENREG_API orError_t orSetEnqueueHook(orEnqueueHook_t hook);
/* Same as orLaunchKernel(), except that observers see the operands, which are all that the kernel reads and writes. A
 * `count` of 0 declares that it accesses nothing. Copies the operands. */
OPENREG_API orError_t orLaunchKernelWithOperands(orStream_t stream, const orKernel* kernel, const orOperand* operands,
                                                 size_t count);
/* Same as the functions without Try, but do nothing and return orErrorNotReady where those could block: while the
 * stream is full, with OPENREG_LAUNCH_BLOCKING outside of a capture, and while deferred tasks have to run first. Other
 * errors take precedence. A caller with a lock (the GIL) releases it and calls those. A loop of tries may not end. */
OPENREG_API orError_t orTryLaunchKernel(orStream_t stream, const orKernel* kernel);
OPENREG_API orError_t orTryLaunchKernelWithOperands(orStream_t stream, const orKernel* kernel,
                                                    const orOperand* operands, size_t count);
typedef void (*orHostFunction_t)(void* user_data);
/* Enqueues a call of a host function, on a thread of the device. The function must not call this API. */
OPENREG_API orError_t orLaunchHostFunc(orStream_t stream, orHostFunction_t function, void* user_data);
/* Enqueues a delay of the stream that occupies no engine: a kernel of known duration for tests. */
OPENREG_API orError_t orStreamDelay(orStream_t stream, uint64_t nanoseconds);

/* ---- Graphs ------------------------------------------------------------------------------------------------- */

/* Begins a capture: the stream records tasks instead of executing them. A stream that waits for an event of the capture
 * joins it as a branch. Kernels, copies between device and pinned memory, fills, delays, host functions, event records
 * and event waits can be captured. The graph owns the state of its kernels. All other memory that the tasks use must
 * stay valid as long as the graph. Returns orErrorIllegalState if the stream is capturing already. */
OPENREG_API orError_t orStreamBeginCapture(orStream_t stream, orStreamCaptureMode mode);
/* Ends the capture that began on this stream, which must wait for an event after the last task of each branch. The
 * graph is owned by the caller until orGraphDestroy(). Returns orErrorStreamCaptureInvalidated if the capture was
 * invalidated or a branch was not joined. Then its tasks are dropped, `*graph` is null and the streams are as before
 * the capture. Returns orErrorIllegalState if no capture began on this stream. */
OPENREG_API orError_t orStreamEndCapture(orStream_t stream, orGraph_t* graph);
/* Write the capture status of a stream. The second function also writes the id of the capture, or 0 if there is none.
 * The streams of a capture share its id, which is unique in the process. */
OPENREG_API orError_t orStreamIsCapturing(orStream_t stream, orStreamCaptureStatus* status);
OPENREG_API orError_t orStreamGetCaptureInfo(orStream_t stream, orStreamCaptureStatus* status, uint64_t* id);
/* Enqueues a replay of the graph, whose nodes all follow the earlier tasks of the stream. The first branch runs on that
 * stream, the others on streams of the graph. Launches of one graph run one after the other, also on different streams.
 * Returns orErrorInvalidValue unless the stream belongs to the device of the capture. */
OPENREG_API orError_t orGraphLaunch(orGraph_t graph, orStream_t stream);
/* Destroys the handle at once; launches that were enqueued are still executed. */
OPENREG_API orError_t orGraphDestroy(orGraph_t graph);
OPENREG_API orError_t orGraphGetNodeCount(orGraph_t graph, size_t* count); /* writes the number of nodes */
/* Writes the nodes and their order to a Graphviz file. Returns orErrorInvalidValue if the file cannot be written. */
OPENREG_API orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path);

/* ---- Observers ----------------------------------------------------------------------------------------------- */

typedef enum orTaskKind {
  orTaskKernel = 0,
  orTaskHostFunction = 1,
  orTaskCopy = 2,
  orTaskFill = 3,
  orTaskDelay = 4,
  orTaskEventRecord = 5,  /* of an event with timing; recording another one enqueues nothing */
  orTaskEventWait = 6,    /* for an event that was not complete; also between the branches of a graph */
  orTaskSemaphoreWait = 7 /* for a value that was not reached */
} orTaskKind;

/* A task. Each stream has a queue: (queue, ticket) identifies a task until the process ends, while the handle of a
 * destroyed stream does not. A later stream may reuse the queue and continues its tickets. */
typedef struct orTaskInfo {
  uint64_t correlation; /* number of the task among all observed ones, or the value that `submit` has set instead */
  orTaskKind kind;
  int device;
  orStream_t stream;
  uint32_t queue;
  uint64_t ticket;           /* its sequence number in the queue; 0 for a captured task */
  const char* name;          /* of a kernel; null otherwise */
  uint64_t bytes;            /* of a copy or fill */
  uint64_t graph_launch;     /* number of the graph launch that it belongs to; 0 if there is none */
  uint64_t node;             /* number of its node among those of all captures; 0 for a wait, and without a graph */
  orEvent_t event;           /* of an event record */
  uint32_t waited_queue;     /* of an event wait, which ends when this queue ... */
  uint64_t waited_ticket;    /* ... has completed this ticket */
  orSemaphore_t semaphore;   /* of a semaphore wait, which ends when it ... */
  uint64_t value;            /* ... has reached this value */
  const orOperand* operands; /* null: unknown, or of a kernel while the subscription has no orSubscribeOperands */
  size_t operand_count;
} orTaskInfo;

typedef struct orTaskCompletion {
  uint64_t correlation; /* as `submit` left it */
  orTaskKind kind;
  int device;
  orStream_t stream;
  uint32_t queue;
  uint64_t ticket;
  int engine;        /* as in orEngineGetStats(), or of the simulated chip; -1 if it needed none */
  uint64_t launched; /* when it was enqueued */
  uint64_t begin;    /* when an engine began it; of a wait, delay or record, when it became the first of its stream */
  uint64_t end;      /* when it was complete */
  orError_t status;  /* orSuccess; orErrorLaunchFailure or orErrorDeviceLost if it failed or was skipped */
  int skipped;       /* 1 if it was not executed, because its device had failed before */
} orTaskCompletion;

typedef enum orSyncKind {
  orSyncEventRecord = 0,     /* an event was recorded at a place */
  orSyncEventWait = 1,       /* a stream will wait for the place of an event */
  orSyncEvent = 2,           /* the host has synchronized with the place of an event */
  orSyncStream = 3,          /* the host has synchronized with a place, by orStreamSynchronize() or a blocking copy */
  orSyncDevice = 4,          /* the host has synchronized with a device, also by orFree(), orFreeHost(), ... */
  orSyncEventQuery = 5,      /* the host has queried an event, which was complete */
  orSyncStreamQuery = 6,     /* the host has queried a stream, which was complete up to the place */
  orSyncSemaphoreSignal = 7, /* the host has signaled a value of a semaphore */
  orSyncSemaphoreWait = 8    /* a stream will wait for a value of a semaphore */
} orSyncKind;

/* An action that orders tasks and the host. A place is a ticket of a queue, and stands for all tasks up to it. */
typedef struct orSyncInfo {
  orSyncKind kind;
  int device;        /* of the place or of the waiting stream; -1 for a signal */
  orStream_t stream; /* of the place; null for a device, and for an event without a record */
  uint32_t queue;
  uint64_t ticket;
  orEvent_t event;
  orStream_t waiting; /* the stream that will wait */
  uint32_t waiting_queue;
  orSemaphore_t semaphore;
  uint64_t value;
  uint64_t time; /* of the host, by the clock of events */
} orSyncInfo;

typedef enum orMemoryAction {
  orMemoryAllocated = 0,
  orMemoryReleased = 1,
  orMemoryImported = 2, /* by orIpcOpenMemHandle() */
  orMemoryClosed = 3    /* by orIpcCloseMemHandle() */
} orMemoryAction;

typedef struct orMemoryInfo {
  orMemoryAction action;
  orMemoryType type; /* device memory or pinned memory */
  int device;        /* -1 for pinned memory */
  void* address;
  size_t size; /* in bytes, rounded up to pages */
} orMemoryInfo;

#define OPENREG_SUBSCRIBER_VERSION 1

typedef enum orSubscribeFlags {
  orSubscribeOperands = 0x1, /* the subscriber uses the operands of kernels, which callers then have to collect */
  orSubscribeTime = 0x2      /* the subscriber is a time source, see orSubscriber */
} orSubscribeFlags;

/* A table of callbacks, each of which may be null, for an observer: a profiler, a sanitizer or a performance model.
 * Subscribers are called in the order of their subscriptions. Without one, a task costs one comparison more.
 *   - Callbacks run under the driver's mutex, one at a time over all threads, in the order of what they report. They
 *     delay the whole driver, so they should only store what they need and return.
 *   - A callback must not acquire a lock that a thread may hold while it calls this API, such as Python's GIL.
 *   - A callback may call what needs no device (see Fork above). All other functions return orErrorNotSupported.
 *   - A callback must not throw. If it does, no callback of the subscription is called any more, and orUnsubscribe()
 *     returns orErrorIllegalState with the exception's text.
 *   - Arguments are valid until the callback returns. Later versions may add members at their end.
 *
 * A subscriber with orSubscribeTime is the time source: its `host`, `engine` and `duration` supply simulated time, that
 * of another chip. The results of tasks are unchanged.
 *   - The clock begins at the steady clock's time. All threads of the host share the host time. It advances by what
 *     `host` returns for each enqueued task, and to the end of what the host waits for.
 *   - A task begins when it was enqueued, its stream's earlier tasks and what it waits for have ended, and its engine
 *     is free. The task that can begin first is executed first, then that of higher priority, then the oldest.
 *   - Delays, event records and waits occupy no engine. A semaphore wait takes its `duration`, or ends at the signal.
 *   - Tasks are deferred, and run one at a time while the host waits. At a query, and when more than 256 are deferred,
 *     those run that have begun by the host time. Queries compare with that time. It advances if the program polls: 64
 *     queries that return orErrorNotReady, with nothing enqueued between them.
 *   - There is at most one time source, and none with OPENREG_SCHEDULE_SEED. Event times from within its subscription
 *     and from outside come from different clocks. */
typedef struct orSubscriber {
  size_t size;          /* sizeof(orSubscriber) */
  unsigned int version; /* OPENREG_SUBSCRIBER_VERSION */
  unsigned int flags;   /* some of orSubscribeFlags, or 0 */
  /* A task was enqueued, alone or by a graph launch, on the calling thread. `correlation` holds the task's number, and
   * the callback may replace it for `complete`, `duration`, `engine` and `host`. */
  void (*submit)(void* user, const orTaskInfo* task, uint64_t* correlation);
  /* A task is complete, on any thread. Called exactly once for each task that was enqueued between orSubscribe() and
   * orUnsubscribe(), unless the process exits first. */
  void (*complete)(void* user, const orTaskCompletion* completion);
  /* Tasks and the host were ordered, on the calling thread. */
  void (*sync)(void* user, const orSyncInfo* sync);
  /* Memory was allocated or is about to be released, on the calling thread. */
  void (*memory)(void* user, const orMemoryInfo* memory);
  /* A capturing stream recorded a task as node number `node`, on the calling thread. */
  void (*capture)(void* user, const orTaskInfo* task);
  /* Returns 1 and writes how long a kernel, copy, fill or host function took, or returns 0. The first duration counts;
   * without one the seed decides, or it took no time. Called with OPENREG_SCHEDULE_SEED or a time source, after the
   * task, without operands, on the engine's thread; for a semaphore wait (time source only) on the one that ends it. */
  int (*duration)(void* user, const orTaskInfo* task, uint64_t* nanoseconds);
  /* Time source only. Returns the chip's engine for a task, 0 to 63, or -1 if it needs none; null stands for engine 0.
   * Called on any thread, any number of times; the result must not change. */
  int (*engine)(void* user, const orTaskInfo* task);
  /* Time source only. Called after `submit`, on its thread. Returns the nanoseconds that the enqueue took; null: 0. */
  uint64_t (*host)(void* user, const orTaskInfo* task);
} orSubscriber;

/* Begins a subscription, whose callbacks receive `user`. Copies the table. Returns orErrorInvalidValue for an unknown
 * size, version or flag, and for a table without callbacks. A time source blocks until all queues are empty. It is
 * rejected with orErrorNotSupported under OPENREG_SCHEDULE_SEED, and with orErrorIllegalState beside another. */
OPENREG_API orError_t orSubscribe(const orSubscriber* table, void* user, orSubscription_t* subscription);
/* Ends a subscription. First runs all deferred tasks if it is a time source. Then invalidates the handle and blocks
 * until all tasks that the subscription has seen are complete, which may require that a semaphore is signaled.
 * Meanwhile only `complete` is called, and afterwards nothing. */
OPENREG_API orError_t orUnsubscribe(orSubscription_t subscription);

#ifdef __cplusplus
}
#endif
#endif /* OPENREG_H_ */
