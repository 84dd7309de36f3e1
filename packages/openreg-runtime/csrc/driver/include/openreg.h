/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C API of the simulated accelerator.
 *
 * The device has its own memory, which the host cannot dereference, and executes work asynchronously: functions
 * whose description says "enqueues" return before the work is done. The header needs no PyTorch and can be used from C,
 * C++ or ctypes.
 *
 * Contracts that hold for every function:
 *   - Result: orSuccess or the cause of the failure. Nothing is changed when an argument is refused. The thread's last
 *     failure is kept for orGetLastError(), its full text (function, device, limit, way out) for
 *     orGetLastErrorMessage(). No exception crosses this interface.
 *   - Threads: every function may be called from any thread. Only "current device" is per thread.
 *   - Handles: streams, events, graphs, semaphores and subscriptions are opaque values, never addresses. A destroyed or
 *     foreign handle is refused with orErrorInvalidResourceHandle.
 *   - Fork: in a child of a process that used the device every call returns orErrorForkedChild. Exceptions: releases
 *     (orFree, orFreeHost, orStreamDestroy, orEventDestroy, orGraphDestroy, orSemaphoreDestroy, orUnsubscribe,
 *     orIpcCloseMemHandle) do nothing and succeed; what needs no device answers as ever: errors, versions,
 *     orDriverIsUsable(), orThreadSetProgress(), orOperandsWanted(), orRegisterFaultKind(), and of devices the count,
 *     properties, peers, priorities and current index.
 *   - Exit: work still queued when the process exits is dropped; the kernel that is running is waited for. From then on
 *     calls answer as in a forked child, with orErrorDeinitialized, and so do calls that were waiting for dropped work.
 *   - Asynchronous failure: a kernel that fails, or a semaphore that does while a stream waits for it, puts the device
 *     into a sticky error state: later work is skipped, and calls that enqueue on the device or synchronise it return
 *     orErrorLaunchFailure until orDeviceReset(). Of a lost device it is orErrorDeviceLost, until the process ends.
 *   - Capture: between orStreamBeginCapture() and orStreamEndCapture() work is recorded, not run. A call that needs
 *     the result of recorded work returns orErrorStreamCaptureUnsupported and invalidates the capture.
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

/* Version of this interface: major * 1000 + minor. */
#define OPENREG_API_VERSION 1004

/* Most devices that OPENREG_DEVICE_COUNT may ask for. */
#define OPENREG_MAX_DEVICES 64

typedef enum orError_t {
  orSuccess = 0,
  orErrorUnknown = 1,                   /* a failure of the host system that no other code describes */
  orErrorNotReady = 2,                  /* not a failure: the queried work has not finished */
  orErrorInvalidValue = 3,              /* an argument is null, out of range, or does not fit the others */
  orErrorMemoryAllocation = 4,          /* the capacity of the device, or host memory, is exhausted */
  orErrorInvalidDevice = 5,             /* the device index is out of range */
  orErrorInvalidResourceHandle = 6,     /* a stream, event, graph, ... that does not exist (any more) */
  orErrorInvalidDevicePointer = 7,      /* an address that this device did not allocate, or already freed */
  orErrorInvalidMemcpyDirection = 8,    /* the kind of copy does not fit its addresses */
  orErrorInvalidConfiguration = 9,      /* an environment variable has a value that is refused */
  orErrorLaunchFailure = 10,            /* a kernel or a wait failed earlier; sticky until orDeviceReset() */
  orErrorForkedChild = 11,              /* the device was used before fork() and cannot be used in the child */
  orErrorDeinitialized = 12,            /* the process is exiting */
  orErrorNotSupported = 13,             /* meaningful, but not on this device */
  orErrorDeviceLost = 14,               /* the device is gone until the process ends (fault injection) */
  orErrorStreamCaptureUnsupported = 15, /* the call cannot be part of a capture, or conflicts with one */
  orErrorStreamCaptureInvalidated = 16, /* an earlier refused call invalidated the capture; it can only be ended */
  orErrorIllegalState = 17              /* the stream or semaphore is not in the state that the call needs */
} orError_t;

/* Copy directions; orMemcpyDefault infers the direction from the addresses. */
typedef enum orMemcpyKind {
  orMemcpyHostToHost = 0,
  orMemcpyHostToDevice = 1,
  orMemcpyDeviceToHost = 2,
  orMemcpyDeviceToDevice = 3,
  orMemcpyDefault = 4
} orMemcpyKind;

typedef enum orMemoryType {
  orMemoryTypeUnmanaged = 0, /* memory that this library does not know: ordinary host memory */
  orMemoryTypeHost = 1,      /* pinned host memory from orMallocHost() */
  orMemoryTypeDevice = 2     /* device memory from orMalloc() */
} orMemoryType;

typedef struct orPointerAttributes {
  orMemoryType type;
  int device;    /* of device memory; -1 otherwise */
  void* pointer; /* the address as given */
} orPointerAttributes;

typedef enum orEventFlags {
  orEventDisableTiming = 0x0, /* the default: cheap, orders work only */
  orEventEnableTiming = 0x1   /* orEventElapsedTime() may be asked */
} orEventFlags;

typedef struct orDeviceProp {
  char name[64];
  size_t totalGlobalMem;   /* capacity in bytes */
  int multiProcessorCount; /* host cores that kernels may use */
  int major;               /* API version, major part */
  int minor;               /* API version, minor part */
} orDeviceProp;

/* Counters of one device since the process started or orDeviceReset(); an engine's present work counts up to now. */
typedef struct orDeviceStats {
  uint64_t launches;         /* kernels that ran */
  uint64_t copies;           /* copies and fills that ran */
  uint64_t bytes_copied;     /* by those copies */
  uint64_t busy_nanoseconds; /* time in which an engine worked for this device */
  size_t allocated_bytes;    /* device memory in use now */
  size_t peak_allocated_bytes;
} orDeviceStats;

/* Counters of one stream since it was created. */
typedef struct orStreamStats {
  uint64_t launches;
  uint64_t copies;
  uint64_t bytes_copied;
  uint64_t busy_nanoseconds; /* time in which an engine worked for this stream, up to now */
  uint64_t submitted;        /* entries ever enqueued: work, waits, delays and timestamps */
  uint64_t completed;        /* of those, done */
} orStreamStats;

/* Counters of one engine (see orGetEngineCount) since the process started. */
typedef struct orEngineStats {
  char name[32];             /* "compute" or "copy" */
  uint64_t tasks;            /* kernels, copies, fills and host functions that it ran, of all devices */
  uint64_t busy_nanoseconds; /* time in which it worked, up to now */
} orEngineStats;

typedef enum orStreamCaptureStatus {
  orStreamCaptureStatusNone = 0,
  orStreamCaptureStatusActive = 1,
  orStreamCaptureStatusInvalidated = 2
} orStreamCaptureStatus;

/* Which threads are refused, while a capture runs, calls that would wait for a device whose stream is capturing:
 * orDeviceSynchronize, orDeviceReset, orMemcpy, orMemset, orFree, orFreeHost, orIpcGetMemHandle, orIpcCloseMemHandle */
typedef enum orStreamCaptureMode {
  orStreamCaptureModeGlobal = 0,      /* from every thread */
  orStreamCaptureModeThreadLocal = 1, /* from the thread that began the capture */
  orStreamCaptureModeRelaxed = 2      /* from no thread */
} orStreamCaptureMode;

/* Names a memory segment to another process. Plain bytes: may be sent through a pipe. */
typedef struct orIpcMemHandle_t {
  char reserved[128];
} orIpcMemHandle_t;

typedef struct orGraph* orGraph_t;
typedef struct orStream* orStream_t; /* NULL names the default stream of the current device */
typedef struct orEvent* orEvent_t;
typedef struct orSemaphore* orSemaphore_t;
typedef struct orSubscription* orSubscription_t;

/* ---- Errors ------------------------------------------------------------------------------------------------- */

/* Name of a code, such as "orErrorInvalidDevice"; static storage. Never fails. */
OPENREG_API const char* orGetErrorName(orError_t error);
/* One sentence on the cause of a code; static storage. Never fails. */
OPENREG_API const char* orGetErrorString(orError_t error);
/* The calling thread's last failure, which is then cleared. Sticky device errors come back with the next call. */
OPENREG_API orError_t orGetLastError(void);
/* The same without clearing. */
OPENREG_API orError_t orPeekAtLastError(void);
/* Full text of the calling thread's last failure; empty if none. Valid until this thread's next failing call. */
OPENREG_API const char* orGetLastErrorMessage(void);

/* ---- Devices ------------------------------------------------------------------------------------------------ */

/* Number of devices (OPENREG_DEVICE_COUNT, default 2). Does not initialise the devices. */
OPENREG_API orError_t orGetDeviceCount(int* count);
/* Current device of the calling thread; 0 in a new thread. */
OPENREG_API orError_t orGetDevice(int* device);
/* Changes the current device of the calling thread. */
OPENREG_API orError_t orSetDevice(int device);
OPENREG_API orError_t orGetDeviceProperties(orDeviceProp* properties, int device);
OPENREG_API orError_t orDeviceGetStats(orDeviceStats* stats, int device);
/* Waits until all work of the current device is done. */
OPENREG_API orError_t orDeviceSynchronize(void);
/* Waits for the current device, then clears its sticky error and its counters. What skipped kernels should have written
 * is undefined, and queries of and waits for an event that marks it fail until it is recorded again. A healthy
 * device whose stream waits for a semaphore is waited for like any other: orSemaphoreFail() ends that. */
OPENREG_API orError_t orDeviceReset(void);
/* Percentage, 0 to 100, of the past second in which an engine worked for the device (source: NVML's utilisation). */
OPENREG_API orError_t orDeviceGetUtilization(int* percent, int device);
/* Number of engines that serve all devices, and what each has done. */
OPENREG_API orError_t orGetEngineCount(int* count);
OPENREG_API orError_t orEngineGetStats(orEngineStats* stats, int engine);
/* Sticky error of a device, without waiting: orSuccess, orErrorLaunchFailure or orErrorDeviceLost; see the message. */
OPENREG_API orError_t orDeviceGetError(int device);
/* Range for orStreamCreateWithPriority(): a lower number is served first. */
OPENREG_API orError_t orDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority);
/* Whether work on `device` may address memory of `peer` (always 1 for two different devices). */
OPENREG_API orError_t orDeviceCanAccessPeer(int* canAccess, int device, int peer);
/* Arms faults, replacing those armed before, and counts anew; null or "" disarms all. The form is that of
 * OPENREG_FAULTS: a comma-separated list of KIND:N or KIND:N@DEVICE, where KIND is one of
 *   alloc   the N-th orMalloc() fails with orErrorMemoryAllocation
 *   copy    the N-th copy or fill fails when it runs, as a kernel does
 *   launch  the N-th kernel fails when it runs, without being run
 *   lose    the device is lost when its N-th kernel, copy or fill is about to run
 * or of those that orRegisterFaultKind() has added. Counting starts at 1, over all devices unless one is named; each
 * fault happens once. */
OPENREG_API orError_t orSetFaults(const char* specification);
/* Adds a kind of faults, which OPENREG_FAULTS and orSetFaults() take from then on: for libraries above the driver,
 * whose operations it does not know. The name has lower-case letters and underscores; a name that is known gives its
 * kind again. To be called when the library is loaded: the environment is read on first use, and a kind that is not
 * there by then is refused. Uses no device. */
OPENREG_API orError_t orRegisterFaultKind(int* kind, const char* name);
/* Counts one operation of a registered kind on a device. *strikes is 1 when a fault was ordered for it, 0 otherwise;
 * what happens then is the caller's business. Cheap while nothing is armed. */
OPENREG_API orError_t orCountForFault(int kind, int device, int* strikes);
/* 1 unless this process is a forked child of one that used the device, or is exiting. Takes no lock, never fails: for
 * release paths, which must then do nothing. */
OPENREG_API int orDriverIsUsable(void);
/* Version of the library that is loaded: OPENREG_API_VERSION of its build. */
OPENREG_API orError_t orDriverGetVersion(int* version);

/* ---- Memory ------------------------------------------------------------------------------------------------- */

/* Allocates on the current device; the address is aligned to 4 KiB and its content is undefined (0xFF with
 * OPENREG_POISON=1). Size 0 gives null. For the host to dereference it is a fault. The caller's until orFree(). */
OPENREG_API orError_t orMalloc(void** devPtr, size_t size);
/* Releases; waits for all work of the owning device first. Null is allowed. */
OPENREG_API orError_t orFree(void* devPtr);
/* Pinned host memory, aligned to 4 KiB; copies from and to it are asynchronous. */
OPENREG_API orError_t orMallocHost(void** hostPtr, size_t size);
/* Releases; waits for all devices first. Null is allowed. */
OPENREG_API orError_t orFreeHost(void* hostPtr);
/* Bytes of the current device that can still be allocated, and its capacity. */
OPENREG_API orError_t orMemGetInfo(size_t* free, size_t* total);
/* What an address is. Addresses unknown to this library are orMemoryTypeUnmanaged, not an error. */
OPENREG_API orError_t orPointerGetAttributes(orPointerAttributes* attributes, const void* ptr);
/* The allocation (or import of another process) in which a device address lies: its start and its size in bytes,
 * rounded up to pages. orErrorInvalidDevicePointer where there is none. */
OPENREG_API orError_t orMemGetAddressRange(void** base, size_t* size, const void* devPtr);
/* The distance to add to a device address to get the address that a kernel dereferences; one number for the process.
 * REAL HW: a kernel runs on the device and would dereference the device address itself. */
OPENREG_API orError_t orGetKernelViewOffset(ptrdiff_t* offset);

/* Copies and returns when done; ordered after earlier work of the current device's default stream. */
OPENREG_API orError_t orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind);
/* Enqueues a copy. Asynchronous when no operand is pageable host memory. A pageable source is read before the call
 * returns; a pageable destination is written before it returns. Pinned memory must stay allocated and unchanged until
 * the copy is done. */
OPENREG_API orError_t orMemcpyAsync(void* dst, const void* src, size_t count, orMemcpyKind kind, orStream_t stream);
OPENREG_API orError_t orMemset(void* devPtr, int value, size_t count);
/* Enqueues a fill of device memory with a byte. */
OPENREG_API orError_t orMemsetAsync(void* devPtr, int value, size_t count, orStream_t stream);
/* The same as orMemcpy and orMemcpyAsync from device to device, where the devices that own the two ranges are given and
 * checked. */
OPENREG_API orError_t orMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count);
OPENREG_API orError_t orMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                        orStream_t stream);

/* ---- Memory of other processes ------------------------------------------------------------------------------ */

/* Describes the allocation that starts at devPtr, for other processes of the same user and machine; the same handle
 * every time. Waits for the owning device, and for what the others are running. Address, content and capacity
 * accounting of the allocation stay, and it stays the caller's: after orFree(), or when this process ends, the handle
 * is refused, but who has opened it keeps its bytes. Costs an open file until orFree(). */
OPENREG_API orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* devPtr);
/* Maps the allocation of another process on the current device: *devPtr addresses the same bytes, and writes are seen
 * on both sides. It takes no capacity here; all imports of a device together may have the size of its capacity. Opening
 * a handle again maps it again. Owned by the caller until orIpcCloseMemHandle(). A handle of the own process is refused
 * with orErrorInvalidValue, and so is one that was damaged, or whose allocation is gone. Nothing orders the work of two
 * processes: synchronise before handing over. `flags` must be 0. */
OPENREG_API orError_t orIpcOpenMemHandle(void** devPtr, orIpcMemHandle_t handle, unsigned int flags);
/* Unmaps what orIpcOpenMemHandle() returned; waits for all work of the device first. orFree() does not take it. */
OPENREG_API orError_t orIpcCloseMemHandle(void* devPtr);

/* ---- Streams ------------------------------------------------------------------------------------------------ */

/* A new stream of the current device. It costs no thread. Owned by the caller until orStreamDestroy(). */
OPENREG_API orError_t orStreamCreate(orStream_t* stream);
/* Priorities outside the range are clamped to it. `flags` must be 0. */
OPENREG_API orError_t orStreamCreateWithPriority(orStream_t* stream, unsigned int flags, int priority);
/* The handle of a device's default stream, for use whatever the current device is. */
OPENREG_API orError_t orDeviceGetDefaultStream(orStream_t* stream, int device);
/* The handle becomes invalid at once; work already enqueued still runs. The default stream cannot be destroyed. */
OPENREG_API orError_t orStreamDestroy(orStream_t stream);
/* orSuccess when all work enqueued so far is done, orErrorNotReady otherwise. */
OPENREG_API orError_t orStreamQuery(orStream_t stream);
/* Waits until all work enqueued so far is done. */
OPENREG_API orError_t orStreamSynchronize(orStream_t stream);
/* Enqueues: later work of the stream starts after what `event` had recorded at the time of this call, on whatever
 * device. An event that was never recorded is no wait. `flags` must be 0. */
OPENREG_API orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event, unsigned int flags);
OPENREG_API orError_t orStreamGetPriority(orStream_t stream, int* priority);
OPENREG_API orError_t orStreamGetDevice(orStream_t stream, int* device);
OPENREG_API orError_t orStreamGetStats(orStream_t stream, orStreamStats* stats);

/* ---- Events ------------------------------------------------------------------------------------------------- */

OPENREG_API orError_t orEventCreate(orEvent_t* event);
OPENREG_API orError_t orEventCreateWithFlags(orEvent_t* event, unsigned int flags);
OPENREG_API orError_t orEventDestroy(orEvent_t event);
/* Marks the work enqueued so far on the stream; recording again moves the mark. Blocks while the stream is full if the
 * event has timing: only then it takes a place. */
OPENREG_API orError_t orEventRecord(orEvent_t event, orStream_t stream);
/* orSuccess when the marked work is done or nothing was recorded, orErrorNotReady otherwise. */
OPENREG_API orError_t orEventQuery(orEvent_t event);
OPENREG_API orError_t orEventSynchronize(orEvent_t event);
/* Milliseconds between two records on one device. Both events need orEventEnableTiming; orErrorNotReady while one of
 * them is not done. With OPENREG_SCHEDULE_SEED the time is virtual, while an observer keeps the time (orSubscribeTime)
 * it is that of its chip. */
OPENREG_API orError_t orEventElapsedTime(float* milliseconds, orEvent_t start, orEvent_t end);

/* ---- Semaphores ---------------------------------------------------------------------------------------------- */

/* A semaphore with a first value. Owned by the caller until orSemaphoreDestroy().
 *
 * A semaphore is a 64-bit value that only grows, and belongs to the process. A stream waits until it has reached a
 * value, which any thread may signal: so a stream waits for something outside of the device, a message of another
 * process say, while no engine and no thread of the host blocks.
 *   - It ends whatever happens: on a device that has failed or is lost a wait is over at once, like the work behind it;
 *     when the process exits it is dropped; with orSemaphoreFail() it fails.
 *   - With OPENREG_LAUNCH_BLOCKING work behind a wait blocks the thread that enqueues it until the value is signalled.
 *   - With OPENREG_SCHEDULE_SEED the time of a signal must not change the order of work. A signal counts only when
 *     nothing else can run: then that of the first wait, in the order of orStreamWaitSemaphore(), in the way of what a
 *     thread waits for. Other signals that come first are kept. After a second without that signal they count, so that
 *     a program goes on whose order cannot repeat. A query counts as a wait where a program polls: after 64 that let
 *     nothing run, with nothing enqueued between them. */
OPENREG_API orError_t orSemaphoreCreate(orSemaphore_t* semaphore, uint64_t value);
/* Refused with orErrorIllegalState while a stream holds a wait for it that is not over. */
OPENREG_API orError_t orSemaphoreDestroy(orSemaphore_t semaphore);
/* Raises the value; streams that wait for it or a lower one go on. The same value again changes nothing, a lower one is
 * refused with orErrorInvalidValue. orErrorIllegalState after orSemaphoreFail(). */
OPENREG_API orError_t orSemaphoreSignal(orSemaphore_t semaphore, uint64_t value);
/* No further value will come: streams that wait for one, or do so later, put their devices into the sticky error state
 * that a failing kernel leaves behind. `status` is any code that is a failure; `message` says why, or is null. What has
 * been reached stays reached. The second failure is refused with orErrorIllegalState, and the first remains. */
OPENREG_API orError_t orSemaphoreFail(orSemaphore_t semaphore, orError_t status, const char* message);
/* The value that was signalled last. It is written also when the semaphore has failed: orErrorIllegalState with the
 * reason. */
OPENREG_API orError_t orSemaphoreGetValue(orSemaphore_t semaphore, uint64_t* value);
/* Enqueues: later work of the stream starts after the semaphore has reached `value`. Enqueues nothing where it has. A
 * capturing stream refuses it with orErrorStreamCaptureUnsupported, which invalidates the capture. */
OPENREG_API orError_t orStreamWaitSemaphore(orStream_t stream, orSemaphore_t semaphore, uint64_t value);
/* 1: the calling thread moves communication along and is a helper of the program, not a part of it; 0: as every thread
 * begins. With OPENREG_SCHEDULE_SEED such a thread's waits and queries let nothing run: they are met by what other
 * threads wait for, or after a second in which these want nothing. Such a thread should enqueue nothing. */
OPENREG_API orError_t orThreadSetProgress(int progress);

/* ---- Work --------------------------------------------------------------------------------------------------- */

/* Runs on the engine of the stream's device. Returns orSuccess, or any other code after writing a zero-terminated
 * reason of at most `message_size` bytes. Must not throw, must not call this API except orGetDevice() (the stream's
 * device), and must not wait for other work. May be called again by a graph replay, so it leaves `state` as it found
 * it. */
typedef orError_t (*orKernelFunction_t)(void* state, char* message, size_t message_size);
typedef void (*orReleaseFunction_t)(void* state);

typedef struct orKernel {
  const char* name; /* shown in errors; must outlive the kernel's execution (a literal, say) */
  orKernelFunction_t function;
  void* state; /* handed to `function` */
  /* Called once when `state` is no longer needed, on any thread, also when the kernel was skipped; not for work that
   * process exit drops. Must not call this API. May be null. */
  orReleaseFunction_t release;
} orKernel;

/* Enqueues a kernel. The device owns `state` if, and only if, the call succeeds: with OPENREG_LAUNCH_BLOCKING, a launch
 * whose kernel failed leaves it to the caller. Blocks while the stream holds the most launches that it can (16384). */
OPENREG_API orError_t orLaunchKernel(orStream_t stream, const orKernel* kernel);
/* What a task does with an operand. */
typedef enum orAccess { orAccessRead = 1, orAccessWrite = 2, orAccessReadWrite = 3 } orAccess;

/* A range of memory that a task reads or writes: of device memory as orMalloc() gives it, or of the host. */
typedef struct orOperand {
  const void* address;
  size_t size; /* in bytes; of an operand with gaps, from its first byte to its last */
  orAccess access;
} orOperand;

/* 1 when somebody asks what launches read and write: an observer that wants operands, or a capture, whose replays may
 * be observed later. Cheap, never fails: a caller then passes them to orLaunchKernelWithOperands(). */
OPENREG_API int orOperandsWanted(void);
/* The same as orLaunchKernel(), and tells observers all that the kernel reads and writes; `count` 0 says that it is
 * nothing. The operands are copied. */
OPENREG_API orError_t orLaunchKernelWithOperands(orStream_t stream, const orKernel* kernel, const orOperand* operands,
                                                 size_t count);
/* The same as orLaunchKernel() and orLaunchKernelWithOperands(), but where these could have to wait they do nothing and
 * return orErrorNotReady, which is no failure. That is so while the stream holds the most launches that it can, with
 * OPENREG_LAUNCH_BLOCKING for each launch that a capture does not record, and with OPENREG_SCHEDULE_SEED while so much
 * is held back that a launch lets some of it run. Whatever else there is to refuse is refused first.
 *
 * For callers that hold what a kernel or another thread may need to go on, such as the GIL of Python: they give it away
 * and then call orLaunchKernel(). To try again instead may never succeed, since with a seed nothing runs until somebody
 * waits. */
OPENREG_API orError_t orTryLaunchKernel(orStream_t stream, const orKernel* kernel);
OPENREG_API orError_t orTryLaunchKernelWithOperands(orStream_t stream, const orKernel* kernel,
                                                    const orOperand* operands, size_t count);
typedef void (*orHostFunction_t)(void* user_data);
/* Enqueues a call on a thread of the device, in order with the stream's work; it must not call this API. */
OPENREG_API orError_t orLaunchHostFunc(orStream_t stream, orHostFunction_t function, void* user_data);
/* Enqueues a pause of the stream which keeps no engine busy: a kernel of known duration for tests. */
OPENREG_API orError_t orStreamDelay(orStream_t stream, uint64_t nanoseconds);

/* ---- Graphs ------------------------------------------------------------------------------------------------- */

/* From now on the stream records what is enqueued on it instead of running it. Streams that wait for an event which a
 * capturing stream recorded join the capture. Kernels, copies between device and pinned memory, fills, delays, host
 * functions, records and waits can be captured. Whatever the recorded work uses (memory, kernel state) has to stay
 * valid as long as the graph; the graph owns the state of its kernels. */
OPENREG_API orError_t orStreamBeginCapture(orStream_t stream, orStreamCaptureMode mode);
/* Ends the capture that began on this stream. Every stream that joined must have been joined back: this stream waits
 * for an event recorded after its last work. When this fails, what was recorded is dropped, *graph is null, and the
 * streams are as before the capture. The graph is owned by the caller until orGraphDestroy(). */
OPENREG_API orError_t orStreamEndCapture(orStream_t stream, orGraph_t* graph);
OPENREG_API orError_t orStreamIsCapturing(orStream_t stream, orStreamCaptureStatus* status);
/* The same, and which capture it is: streams of one capture have the same id, which no other capture of the process
 * has. 0 when the stream is not capturing. */
OPENREG_API orError_t orStreamGetCaptureInfo(orStream_t stream, orStreamCaptureStatus* status, uint64_t* id);
/* Enqueues the recorded work once more, as if it were one entry of the stream: what the stream held before comes before
 * all of it. Streams of the capture other than the first are replayed on streams of the graph's own. Launches of one
 * graph follow one another, also from different streams. The stream must belong to the device of the capture. */
OPENREG_API orError_t orGraphLaunch(orGraph_t graph, orStream_t stream);
/* The handle becomes invalid at once; launches already enqueued still run. */
OPENREG_API orError_t orGraphDestroy(orGraph_t graph);
/* Number of recorded entries. */
OPENREG_API orError_t orGraphGetNodeCount(orGraph_t graph, size_t* count);
/* Writes the entries and their order as a Graphviz file. */
OPENREG_API orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path);

/* ---- Observers ----------------------------------------------------------------------------------------------- */

/* What an entry of a stream is. */
typedef enum orTaskKind {
  orTaskKernel = 0,
  orTaskHostFunction = 1,
  orTaskCopy = 2,
  orTaskFill = 3,
  orTaskDelay = 4,
  orTaskEventRecord = 5,  /* of an event with timing; a record of another one enqueues nothing */
  orTaskEventWait = 6,    /* of one that was not done yet; also between the streams of a graph */
  orTaskSemaphoreWait = 7 /* of a value that was not reached yet */
} orTaskKind;

/* An entry of a stream. Behind each stream is a queue: (queue, ticket) names an entry for as long as the process lives,
 * while the handle of a destroyed stream does not. A later stream may use the queue again, with tickets that go on. */
typedef struct orTaskInfo {
  uint64_t correlation; /* number of the entry among all that were observed; what `submit` has put in its place */
  orTaskKind kind;
  int device;
  orStream_t stream;
  uint32_t queue;
  uint64_t ticket;        /* its place in the queue */
  const char* name;       /* of a kernel; null otherwise */
  uint64_t bytes;         /* of a copy or fill */
  uint64_t graph_launch;  /* number of the launch of a graph that it belongs to; 0: of none */
  uint64_t node;          /* number of what it repeats, among all that captures have recorded; 0: a wait, or no graph */
  orEvent_t event;        /* of an event record */
  uint32_t waited_queue;  /* of an event wait: passes when this queue ... */
  uint64_t waited_ticket; /* ... has completed this ticket */
  orSemaphore_t semaphore;   /* of a semaphore wait, with ... */
  uint64_t value;            /* ... the value */
  const orOperand* operands; /* null: nobody has told them, or they are a kernel's and the subscription did not ask */
  size_t operand_count;
} orTaskInfo;

typedef struct orTaskCompletion {
  uint64_t correlation; /* as `submit` left it */
  orTaskKind kind;
  int device;
  orStream_t stream;
  uint32_t queue;
  uint64_t ticket;
  int engine;        /* as in orEngineGetStats(), or of the chip whose time is modelled; -1: none was needed */
  uint64_t launched; /* when it was enqueued */
  uint64_t begin;    /* when an engine took it; of waits, delays and records: when it was their turn */
  uint64_t end;      /* when it was done */
  orError_t status;  /* orSuccess; orErrorLaunchFailure or orErrorDeviceLost when it failed or was skipped */
  int skipped;       /* 1: not run, because its device had failed before */
} orTaskCompletion;

typedef enum orSyncKind {
  orSyncEventRecord = 0,     /* an event marks a place in a queue */
  orSyncEventWait = 1,       /* a stream will wait for the place that an event marks */
  orSyncEvent = 2,           /* the host has waited for the place that an event marks */
  orSyncStream = 3,          /* the host has waited for a place: a synchronise, or a call that blocks, as a copy may */
  orSyncDevice = 4,          /* the host has waited for all streams of a device; so do orFree(), orFreeHost(), ... */
  orSyncEventQuery = 5,      /* the host has asked, and the event was done */
  orSyncStreamQuery = 6,     /* the host has asked, and the stream was done up to the place */
  orSyncSemaphoreSignal = 7, /* the host lets a semaphore reach a value */
  orSyncSemaphoreWait = 8    /* a stream will wait for a value */
} orSyncKind;

/* What orders work of the device and the host. A place is a ticket of a queue, and means all work up to it. */
typedef struct orSyncInfo {
  orSyncKind kind;
  int device;        /* of the place or of the stream that waits; -1 for a signal */
  orStream_t stream; /* of the place; null when an event marks nothing yet, and for a device */
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
  orMemoryImported = 2, /* orIpcOpenMemHandle() */
  orMemoryClosed = 3    /* orIpcCloseMemHandle() */
} orMemoryAction;

typedef struct orMemoryInfo {
  orMemoryAction action;
  orMemoryType type; /* of the device, or pinned memory of the host */
  int device;        /* -1 for the host */
  void* address;
  size_t size; /* bytes, rounded up to pages */
} orMemoryInfo;

/* Version of the table below. */
#define OPENREG_SUBSCRIBER_VERSION 1

typedef enum orSubscribeFlags {
  orSubscribeOperands = 0x1, /* tell the operands of tasks; callers then have to gather them */
  orSubscribeTime = 0x2      /* keep the time: see below */
} orSubscribeFlags;

/* What an observer wants to be told; callbacks may be null.
 *
 * An observer is told what happens on the device: a profiler, a sanitizer, a predictor of performance. There may be
 * several, which are called in the order of their subscriptions; without one, nothing is paid.
 *   - Callbacks are called with the device's lock held: one at a time over all threads, in the order in which things
 *     happen, and so that nothing else of the device goes on meanwhile. They should take a note and return.
 *   - A callback must not wait for a lock under which other threads call this API, as the GIL of Python is.
 *   - Of this API it may call what needs no device (see Fork above). All else returns orErrorNotSupported: a callback
 *     cannot launch, wait, subscribe or unsubscribe.
 *   - It must not throw. If it does, the exception is caught, no callback of the subscription is called any more, and
 *     orUnsubscribe() returns orErrorIllegalState with what was thrown.
 *   - Structures that callbacks get live until they return, and may be longer in later versions.
 *   - Times are nanoseconds of the clock of events; with OPENREG_SCHEDULE_SEED they are virtual.
 *
 * An observer with orSubscribeTime keeps the time: until it ends, work runs in the time of another chip, which its
 * callbacks `host`, `engine` and `duration` know. Results are the same.
 *   - The clock begins where that of this machine stands. The host has one for all of its threads. It goes on by what
 *     `host` says of each entry that is enqueued, and to the end of what the host waits for.
 *   - An entry begins when it was enqueued, what its stream held before has ended, what it waits for has ended, and its
 *     engine is free. Of several that which can begin first, then that of the higher priority, then the first one.
 *   - Delays, event records and waits keep no engine busy. A wait for a semaphore takes what `duration` says, or ends
 *     when the host signals.
 *   - To know what comes first, work is held back until the host waits, asks, or has enqueued 256 entries of which some
 *     have begun by its clock; it runs one entry at a time. A query is answered by the host's clock. Where a program
 *     polls (64 queries that were told "not ready", with nothing enqueued between them) the clock goes on.
 *   - There is one at a time, and none with OPENREG_SCHEDULE_SEED. orSubscribe() waits until nothing is queued, and
 *     orUnsubscribe() runs what was held back. Records of events from before and from within have different clocks. */
typedef struct orSubscriber {
  size_t size;          /* sizeof(orSubscriber) */
  unsigned int version; /* OPENREG_SUBSCRIBER_VERSION */
  unsigned int flags;   /* some of orSubscribeFlags */
  /* An entry was enqueued, on the thread that did so; of a graph, each entry of each launch. `correlation` holds the
   * number of the entry; what the callback puts there comes back with `complete` and `duration`. */
  void (*submit)(void* user, const orTaskInfo* task, uint64_t* correlation);
  /* An entry is done, on an engine's or any other thread: exactly once for each entry that was enqueued after
   * orSubscribe() and before orUnsubscribe(), unless the process exits first. */
  void (*complete)(void* user, const orTaskCompletion* completion);
  /* Work was ordered, on the calling thread. */
  void (*sync)(void* user, const orSyncInfo* sync);
  /* Memory was allocated or released, on the calling thread. */
  void (*memory)(void* user, const orMemoryInfo* memory);
  /* A capturing stream recorded an entry, on the thread that did so: `node` is its number, and it has no place. */
  void (*capture)(void* user, const orTaskInfo* task);
  /* Only with OPENREG_SCHEDULE_SEED or orSubscribeTime: how long did this kernel, copy, fill or host function take? 1
   * with the virtual nanoseconds, 0 to leave it to others. The first answer counts; without one the seed decides, or it
   * takes no time. On the engine's thread, after the task has run. Operands are not told again. */
  int (*duration)(void* user, const orTaskInfo* task, uint64_t* nanoseconds);
  /* Only with orSubscribeTime: which engine of the chip runs it? 0 to 63, or -1: none is needed. Null: all are run by
   * engine 0. On any thread, any number of times, before it runs; the answer must not change. */
  int (*engine)(void* user, const orTaskInfo* task);
  /* Only with orSubscribeTime: how many nanoseconds has the host taken to enqueue this entry? On the thread that did,
   * after `submit`. Null: none. */
  uint64_t (*host)(void* user, const orTaskInfo* task);
} orSubscriber;

/* Begins to tell an observer. `user` is handed to the callbacks. The table is copied; one with another size or version,
 * with unknown flags or without any callback is refused with orErrorInvalidValue. */
OPENREG_API orError_t orSubscribe(const orSubscriber* table, void* user, orSubscription_t* subscription);
/* Ends it: no callback but `complete` is called from now on, and none after this returns. Waits until all work that the
 * subscription has seen is done: streams that wait for a semaphore need their signal. The handle is refused from the
 * beginning on. */
OPENREG_API orError_t orUnsubscribe(orSubscription_t subscription);

#ifdef __cplusplus
}
#endif

#endif /* OPENREG_H_ */
