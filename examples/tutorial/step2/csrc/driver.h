// SPDX-License-Identifier: BSD-3-Clause
// The driver of the device, in C. A backend for a chip calls the driver of the chip's maker instead. Besides these
// functions the project needs one thing of the device, from step 3 on: that the host can access its memory. Any thread
// may call a function, and several threads at once.
#pragma once

#include <stddef.h>

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

#ifdef __cplusplus
}
#endif
