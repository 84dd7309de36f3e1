// SPDX-License-Identifier: BSD-3-Clause
// The driver of the device, in C. A backend for a chip calls the driver of the chip's maker instead: nothing else in
// this project knows how the device works.
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
void pocketFree(int device, void* memory);

// Copies between any two addresses, of devices or of the host, and returns when that is done.
void pocketMemcpy(void* destination, const void* source, size_t nbytes);

// Allocates memory of the host that the device can reach, aligned to 64 bytes. Returns NULL where there is not enough.
void* pocketMallocHost(size_t nbytes);
void pocketFreeHost(void* memory);

// A stream: a device runs its kernels one after the other, in the order of their launch. Streams run side by side, and
// are never destroyed.
typedef struct pocketStream pocketStream;
pocketStream* pocketStreamCreate(int device);

// Launches a kernel, which is called with the argument, and returns its ticket. Tickets count up from 1.
uint64_t pocketLaunch(pocketStream* stream, void (*kernel)(void*), void* argument);

// The ticket of the last kernel that was launched, or 0.
uint64_t pocketStreamLast(pocketStream* stream);
// Returns 1 if the kernel of a ticket, and so each before it, is done, and 0 otherwise.
int pocketStreamIsDone(pocketStream* stream, uint64_t ticket);
// Waits for the kernel of a ticket. The host may call it, and so may a kernel of another stream.
void pocketStreamWait(pocketStream* stream, uint64_t ticket);

#ifdef __cplusplus
}
#endif
