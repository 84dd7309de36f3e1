// SPDX-License-Identifier: BSD-3-Clause
// The driver of the device, in C. A backend for a chip calls the driver of the chip's maker instead. Besides these
// functions the project needs one thing of the device, from step 3 on: that the host can access its memory. Any thread
// may call a function, and several threads at once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How many devices there are; their indices begin at 0.
int pocketGetDeviceCount(void);

// Bytes of memory of a device, all and free ones.
void pocketMemGetInfo(int device, size_t* free, size_t* total);

// Allocates memory of a device, aligned to 64 bytes. Returns NULL where there is not enough.
void* pocketMalloc(int device, size_t nbytes);
// Releases memory that no kernel uses any more. It must not wait for kernels, because the threads that run them call
// it, too: they destroy what a kernel owns when it is done. The same holds for pocketFreeHost().
void pocketFree(int device, void* memory);

// Copies between any two addresses, of devices or of the host, and returns when that is done.
void pocketMemcpy(void* destination, const void* source, size_t nbytes);

// Allocates memory of the host that the device can reach, aligned to 64 bytes. Returns NULL where there is not enough.
void* pocketMallocHost(size_t nbytes);
void pocketFreeHost(void* memory);

// A stream: a device runs its kernels one after the other, in the order of their launch. Streams may run side by side.
// They need not: one thread that runs the kernels of all streams in the order of their launch is right, too, because a
// kernel waits only for kernels that were launched before it. Streams are never destroyed.
typedef struct pocketStream pocketStream;
pocketStream* pocketStreamCreate(int device);

// Launches a kernel, which is called with the argument on a thread of the driver, and returns its ticket without a wait
// for kernels. Tickets of a stream count up from 1. A kernel throws nothing and launches nothing.
uint64_t pocketLaunch(pocketStream* stream, void (*kernel)(void*), void* argument);

// The ticket of the last kernel that was launched, or 0.
uint64_t pocketStreamLast(pocketStream* stream);
// Returns 1 if the kernel of a ticket, and so each before it, is done, and 0 otherwise. It does not wait.
int pocketStreamIsDone(pocketStream* stream, uint64_t ticket);
// Waits for the kernel of a ticket, which was launched before. The host calls it, and so do kernels of other streams.
void pocketStreamWait(pocketStream* stream, uint64_t ticket);

#ifdef __cplusplus
}
#endif
