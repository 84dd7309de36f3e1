/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API alone, from C: bytes travel to the device and back, and the device refuses nonsense. */
#include <openreg.h>
#include <stdio.h>
#include <string.h>

static int failed(orError_t error, const char* what) {
  if (error == orSuccess) {
    return 0;
  }
  fprintf(stderr, "%s: %s: %s\n", what, orGetErrorName(error), orGetLastErrorMessage());
  return 1;
}

int main(void) {
  const char sent[] = "there and back";
  char received[sizeof sent] = "";
  void* memory = NULL;
  int count = 0;

  if (failed(orGetDeviceCount(&count), "orGetDeviceCount") || failed(orMalloc(&memory, sizeof sent), "orMalloc") ||
      failed(orMemcpy(memory, sent, sizeof sent, orMemcpyHostToDevice), "copy to the device") ||
      failed(orMemcpy(received, memory, sizeof sent, orMemcpyDeviceToHost), "copy back") ||
      failed(orFree(memory), "orFree")) {
    return 1;
  }
  if (strcmp(sent, received) != 0) {
    fprintf(stderr, "sent '%s', received '%s'\n", sent, received);
    return 1;
  }
  if (orSetDevice(count) != orErrorInvalidDevice) {
    fprintf(stderr, "device %d of %d was accepted\n", count, count);
    return 1;
  }
  printf("driver: %d devices, received '%s'\n", count, received);
  return 0;
}
