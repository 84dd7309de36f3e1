/* SPDX-License-Identifier: BSD-3-Clause */
/* An observer in C: counts what is launched and what completes, and a stream waits for the host meanwhile. */
#include <openreg.h>
#include <stdio.h>

struct notes {
  int submitted;
  int completed;
  int written; /* operands that are written */
};

static void note_submit(void* user, const orTaskInfo* task, uint64_t* correlation) {
  struct notes* notes = user;
  size_t i;
  ++notes->submitted;
  *correlation = 1000;
  for (i = 0; i < task->operand_count; ++i) {
    notes->written += (task->operands[i].access & orAccessWrite) != 0;
  }
}

static void note_complete(void* user, const orTaskCompletion* completion) {
  struct notes* notes = user;
  notes->completed += completion->correlation == 1000 && completion->status == orSuccess;
}

static orError_t kernel_function(void* state, char* message, size_t message_size) {
  (void)message;
  (void)message_size;
  ++*(int*)state;
  return orSuccess;
}

static int failed(orError_t error, const char* what) {
  if (error == orSuccess) {
    return 0;
  }
  fprintf(stderr, "%s: %s: %s\n", what, orGetErrorName(error), orGetLastErrorMessage());
  return 1;
}

int main(void) {
  struct notes notes = {0, 0, 0};
  int ran = 0;
  void* memory = NULL;
  orSemaphore_t semaphore = NULL;
  orSubscription_t subscription = NULL;
  const orKernel kernel = {"count", kernel_function, &ran, NULL};
  orOperand operand = {NULL, 64, orAccessReadWrite};
  orSubscriber table = {0};
  table.size = sizeof table;
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands;
  table.submit = note_submit;
  table.complete = note_complete;

  if (failed(orMalloc(&memory, 64), "orMalloc") || failed(orSemaphoreCreate(&semaphore, 0), "orSemaphoreCreate") ||
      failed(orSubscribe(&table, &notes, &subscription), "orSubscribe")) {
    return 1;
  }
  operand.address = memory;
  if (failed(orStreamWaitSemaphore(NULL, semaphore, 1), "orStreamWaitSemaphore") ||
      failed(orLaunchKernelWithOperands(NULL, &kernel, &operand, 1), "orLaunchKernelWithOperands")) {
    return 1;
  }
  if (ran != 0 || orStreamQuery(NULL) != orErrorNotReady) {
    fprintf(stderr, "the kernel did not wait for the semaphore\n");
    return 1;
  }
  if (failed(orSemaphoreSignal(semaphore, 1), "orSemaphoreSignal") ||
      failed(orUnsubscribe(subscription), "orUnsubscribe") || failed(orFree(memory), "orFree") ||
      failed(orSemaphoreDestroy(semaphore), "orSemaphoreDestroy")) {
    return 1;
  }
  if (ran != 1 || notes.submitted != 2 || notes.completed != 2 || notes.written != 1) {
    fprintf(stderr, "%d ran, %d submitted, %d completed, %d written\n", ran, notes.submitted, notes.completed,
            notes.written);
    return 1;
  }
  printf("observer: %d submitted, %d completed, %d written\n", notes.submitted, notes.completed, notes.written);
  return 0;
}
