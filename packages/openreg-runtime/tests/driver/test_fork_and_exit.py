# SPDX-License-Identifier: BSD-3-Clause
"""A forked child gets errors instead of hangs, and a process ends cleanly with tasks under way."""

from __future__ import annotations

import pytest

from ._platform import IS_POSIX
from .conftest import PATIENCE, RunScript

pytestmark = pytest.mark.skipif(not IS_POSIX, reason="fork(), and native kernels from libc")

FORK = """
def in_child(body):
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            body()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def test_a_child_gets_an_error_from_every_call_and_may_release(run_script: RunScript) -> None:
    done = run_script(
        FORK
        + """
out = ctypes.create_string_buffer(256)
stream, event, address, pinned = api.stream(), api.event(), api.malloc(4096), api.malloc_host(4096)
semaphore = api.semaphore()
from driver.observer import Observer
observer = Observer(api)
ended = Observer(api)
ended.end()
api.delay(stream, 0.01)  # the engines run, and the queue is not empty
kernel = api.kernel(lambda: None)
captured = api.stream()
api.begin_capture(captured)
graph = api.end_capture(captured)
handle = IpcMemHandle.from_buffer_copy(api.export(address))

REFUSED = {
    "orDeviceGetStats": (out, 0), "orDeviceSynchronize": (), "orDeviceReset": (),
    "orDeviceGetUtilization": (out, 0), "orEngineGetStats": (out, 0),
    "orCountForFault": (api.register_fault_kind("planned"), 0, out),
    "orSetFaults": (b"alloc:1",), "orStreamGetStats": (stream, out), "orStreamBeginCapture": (stream, 0),
    "orStreamEndCapture": (stream, out), "orStreamIsCapturing": (stream, out),
    "orStreamGetCaptureInfo": (stream, out, out), "orGraphLaunch": (graph, stream),
    "orGraphGetNodeCount": (graph, out), "orGraphDebugDotPrint": (graph, b"graph.dot"),
    "orDeviceGetError": (0,), "orMalloc": (out, 4096), "orMallocHost": (out, 4096),
    "orMemGetInfo": (out, out), "orPointerGetAttributes": (out, address),
    "orMemGetAddressRange": (out, out, address), "orGetKernelViewOffset": (out,), "orMemcpy": (address, b"x", 1, 4),
    "orMemcpyAsync": (address, b"x", 1, 4, stream), "orMemset": (address, 0, 1),
    "orMemsetAsync": (address, 0, 1, stream), "orStreamCreate": (out,),
    "orMemcpyPeer": (address, 0, address, 0, 1), "orMemcpyPeerAsync": (address, 0, address, 0, 1, stream),
    "orIpcGetMemHandle": (out, address), "orIpcOpenMemHandle": (out, handle, 0),
    "orStreamCreateWithPriority": (out, 0, 0), "orDeviceGetDefaultStream": (out, 0),
    "orStreamQuery": (stream,), "orStreamSynchronize": (stream,),
    "orStreamWaitEvent": (stream, event, 0), "orStreamGetPriority": (stream, out),
    "orStreamGetDevice": (stream, out), "orEventCreate": (out,),
    "orEventCreateWithFlags": (out, 0), "orEventRecord": (event, stream),
    "orEventQuery": (event,), "orEventSynchronize": (event,),
    "orEventElapsedTime": (out, event, event), "orLaunchKernel": (stream, ctypes.byref(kernel)),
    "orLaunchHostFunc": (stream, kernel.function, None), "orStreamDelay": (stream, 0),
    "orSemaphoreCreate": (out, 0), "orSemaphoreSignal": (semaphore, 1), "orSemaphoreFail": (semaphore, 1, None),
    "orSemaphoreGetValue": (semaphore, out), "orStreamWaitSemaphore": (stream, semaphore, 1),
    "orSubscribe": (ctypes.byref(ended.table), None, out),
    "orLaunchKernelWithOperands": (stream, ctypes.byref(kernel), None, 0),
    "orTryMemcpyToHost": (b"x", address, 1, stream),
    "orTryLaunchKernel": (stream, ctypes.byref(kernel)),
    "orTryLaunchKernelWithOperands": (stream, ctypes.byref(kernel), None, 0),
}
RELEASES = {
    "orFree": (address,), "orFreeHost": (pinned,),
    "orStreamDestroy": (stream,), "orEventDestroy": (event,), "orGraphDestroy": (graph,),
    "orIpcCloseMemHandle": (address,), "orSemaphoreDestroy": (semaphore,),
    "orUnsubscribe": (observer.handle,),
}
# What needs no device: errors and settings.
ANSWERED = {
    "orGetDeviceCount": (out,), "orGetDevice": (out,), "orSetDevice": (1,),
    "orGetEngineCount": (out,), "orGetDeviceProperties": (out, 0), "orDeviceGetStreamPriorityRange": (out, out),
    "orDeviceCanAccessPeer": (out, 0, 1), "orDriverGetVersion": (out,), "orThreadSetProgress": (0,),
    "orOperandsWanted": (), "orSetEnqueueHook": (None,),
    "orRegisterFaultKind": (out, b"planned"),
}
OTHERS = {"orGetErrorName", "orGetErrorString", "orGetLastError", "orPeekAtLastError",
          "orGetLastErrorMessage", "orDriverIsUsable"}
assert {*REFUSED, *RELEASES, *ANSWERED, *OTHERS} == set(PROTOTYPES)

def child():
    assert api.c.orDriverIsUsable() == 0
    for name, arguments in REFUSED.items():
        assert getattr(api.c, name)(*arguments) == Error.orErrorForkedChild, name
        message = api.message()
        assert name in message or name + "WithPriority" in message or name + "WithFlags" in message
        assert "fork" in message and "spawn" in message, message
    assert api.c.orMalloc(out, 0) == api.c.orMallocHost(out, 0) == Error.orErrorForkedChild
    for _ in range(2):
        for name, arguments in RELEASES.items():
            assert getattr(api.c, name)(*arguments) == 0, name
    for name, arguments in ANSWERED.items():
        assert getattr(api.c, name)(*arguments) == 0, name
    assert in_child(lambda: api.free(address)) == 0  # a grandchild too

assert in_child(child) == 0
# The parent is not touched by what its child did.
assert api.c.orDriverIsUsable() == 1
api.upload(address, b"still here")
assert api.download(address, 10) == b"still here"
api.synchronize_stream(stream)
api.free(address)
api.free_host(pinned)
print("ok")
"""
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


def test_a_child_does_not_share_the_memory(run_script: RunScript) -> None:
    done = run_script(
        FORK
        + """
address = api.malloc(4096)
api.upload(address, b"parent")
view = api.kernel_view(address)
assert in_child(lambda: ctypes.memset(view, 0, 4096)) == 0
assert api.download(address, 6) == b"parent"
print("ok")
"""
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


def test_a_child_of_a_process_that_did_not_use_the_device_may_use_it(run_script: RunScript) -> None:
    done = run_script(
        FORK
        + """
def child():
    api.launch(None, native("getpid"))
    assert api.c.orDeviceSynchronize() == Error.orErrorLaunchFailure  # getpid() is not 0
    api.free(api.malloc(4096))

assert api.device_count() == 2  # asks for settings only
assert in_child(child) == 0
assert in_child(child) == 0
child()
print("ok")
"""
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


def test_a_child_forked_during_the_first_call_of_another_thread_never_hangs(run_script: RunScript) -> None:
    """Each round is a process of its own that forks while its other thread makes settings and devices."""
    done = run_script(
        FORK
        + """
import random, signal
out = ctypes.create_string_buffer(8)

def child():
    signal.alarm(100)  # ends a child that hangs
    usable = api.c.orDriverIsUsable()
    assert api.c.orGetDeviceCount(out) == 0
    code = api.c.orMalloc(out, 4096)
    assert code == (0 if usable else Error.orErrorForkedChild), code
    assert api.c.orStreamSynchronize(None) == code

def round():
    signal.alarm(110)
    ready = threading.Event()
    def use():
        ready.set()
        assert api.c.orMalloc(ctypes.create_string_buffer(8), 4096) == 0
    thread = threading.Thread(target=use)
    thread.start()
    ready.wait()
    end = time.perf_counter() + random.random() * 1e-3
    while time.perf_counter() < end:
        pass
    code = in_child(child)
    thread.join()
    assert code == 0, f"the child ended with {code}"
    assert api.c.orStreamSynchronize(None) == 0

for _ in range(200):
    assert in_child(round) == 0
print("ok")
""",
        timeout=5 * PATIENCE,
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


def test_a_child_ends_although_the_parent_is_busy(run_script: RunScript) -> None:
    """The child leaves through exit handlers, not through _exit()."""
    done = run_script(
        """
        opened = threading.Event()
        api.launch(None, lambda: opened.wait(120) and None)
        pid = os.fork()
        if pid == 0:
            libc.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        opened.set()
        api.synchronize()
        print("ok")
        """
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


@pytest.mark.parametrize("attempt", range(20))
def test_exit_with_work_queued(run_script: RunScript, attempt: int) -> None:
    """Kernels, copies, pauses and waits are in flight; the number only varies the timing."""
    done = run_script(
        f"""
        attempt = {attempt}
        size = 4 << 20
        pinned, device = api.malloc_host(size), api.malloc(size)
        streams = [api.stream(-(index % 4)) for index in range(8)]
        event = api.event(timed=True)
        for index in range(400):
            stream = streams[index % 8]
            api.launch(stream, native("usleep"), state=1000)
            api.copy_async(device, pinned, size, stream)
            api.copy_async(device, b"x" * 1000, 1000, stream)
            api.record(event, stream)
            api.wait_event(streams[index * 3 % 8], event)
            if index % 50 == 0:
                api.delay(stream, 3600)
        time.sleep(attempt * 0.0005)
        print("queued", flush=True)
        sys.exit(5)
        """
    )
    assert (done.output.split(), done.code) == (["queued"], 5), done.errors
    assert done.errors == ""


def test_exit_waits_for_the_running_kernel_and_drops_the_rest(run_script: RunScript, tmp_path: object) -> None:
    started, leaving = f"{tmp_path}/started", f"{tmp_path}/leaving"
    # The first ends once the engines have to stop, which a thread sees that goes on while exit handlers run: the
    # timer's thread ends then. Where threads cannot be listed it sees that the process leaves, and what follows at
    # once gets half a second.
    until = f"for i in $(seq 6000); do [ -e {leaving} ] && break; sleep 0.01; done"
    done = run_script(
        f"""
        first = ctypes.create_string_buffer(b"touch {started}; {until}; echo finished")
        second = ctypes.create_string_buffer(b"echo dropped")
        for command in (first, second):
            api.launch(None, native("system"), state=ctypes.addressof(command))
        while not os.path.exists({started!r}):
            time.sleep(0.001)
        def timer_runs():
            for task in os.listdir("/proc/self/task"):
                try:
                    if open(f"/proc/self/task/{{task}}/comm").read().strip() == "openreg_timer":
                        return True
                except OSError:
                    pass  # it has ended since
            return False
        listed = os.path.isdir("/proc/self/task")
        while listed and not timer_runs():
            time.sleep(0.001)
        def tell():
            while timer_runs() if listed else api.c.orDriverIsUsable():
                time.sleep(0.001)
            if not listed:
                time.sleep(0.5)
            open({leaving!r}, "w").close()
        threading.Thread(target=tell, daemon=True).start()
        libc.exit(0)
        """
    )
    assert (done.output.split(), done.code) == (["finished"], 0), done.errors


def test_exit_wakes_threads_that_wait_for_dropped_work(run_script: RunScript) -> None:
    """A thread that waits while another one leaves must not hang those who join it at exit."""
    done = run_script(
        """
        codes = []

        def join_at_exit(_argument):  # a C exit handler, older than the device: it runs after it
            waiter.join(60)
            filler.join(60)
            print(*codes, api.c.orDriverIsUsable(), api.c.orFree(address), flush=True)
            print(api.c.orMalloc(ctypes.create_string_buffer(8), 4096), flush=True)

        handler = HostFunction(join_at_exit)
        assert libc.__cxa_atexit(handler, None, None) == 0
        address = api.malloc(4096)
        stream = api.stream()
        api.delay(None, 3600)
        api.delay(stream, 3600)

        def fill():
            while True:
                code = api.c.orStreamDelay(stream, 0)
                if code:
                    codes.append(code)
                    return

        waiter = threading.Thread(target=lambda: codes.append(api.c.orStreamSynchronize(None)))
        filler = threading.Thread(target=fill)
        waiter.start()
        filler.start()
        time.sleep(0.1)  # likely both wait by now; one that comes later gets the same error
        libc.exit(0)
        """
    )
    assert done.output.split() == ["12", "12", "0", "0", "12"], done.errors
    assert done.code == 0


def test_exit_from_a_kernel(run_script: RunScript) -> None:
    done = run_script(
        """
        api.launch(None, native("exit"), state=3)
        time.sleep(600)  # the kernel ends the process meanwhile
        """
    )
    assert (done.code, done.errors) == (3, "")


def test_a_process_that_used_nothing_ends(run_script: RunScript) -> None:
    assert run_script("api.device_count()").code == 0
    assert run_script("api.memory_info()").code == 0
