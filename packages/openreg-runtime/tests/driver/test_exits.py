# SPDX-License-Identifier: BSD-3-Clause
"""Processes end at once with any kind of task enqueued. `nox -s endurance` ends a thousand processes."""

from __future__ import annotations

import pytest

from ._platform import IS_POSIX
from .conftest import RunScript

pytestmark = [pytest.mark.endurance, pytest.mark.skipif(not IS_POSIX, reason="native kernels from libc")]

# fill() queues hours of work of all kinds.
SETUP = """
size = 1 << 20
pinned, device = api.malloc_host(size), api.malloc(size)
api.set_device(1)
far = api.malloc(size)
remote = api.stream()
api.set_device(0)
streams = [api.stream(-(index % 4)) for index in range(4)]
event = api.event(timed=True)
def fill(stream):
    for _ in range(20):
        api.launch(stream, native("usleep"), state=1000)
        api.copy_async(device, pinned, size, stream)
        api.copy_async(far, device, size, stream)
        api.call("orMemsetAsync", device, 1, size, stream)
        api.call("orLaunchHostFunc", stream, native("usleep"), 10)
        api.record(event, stream)
        api.wait_event(remote, event)
    api.delay(stream, 3600)
"""
WORK = {
    "streams of two devices": "for stream in (*streams, remote, None): fill(stream)",
    "a graph": """
api.begin_capture(streams[0])
api.launch(streams[0], native("usleep"), state=1000)
api.copy_async(device, pinned, size, streams[0])
api.delay(streams[0], 0.001)
graph = api.end_capture(streams[0])
for _ in range(50): api.launch_graph(graph, streams[1])
api.destroy_graph(graph)
""",
    "an unfinished capture": """
fill(streams[1])
api.begin_capture(streams[0])
api.launch(streams[0], native("usleep"), state=1000)
""",
    "streams that wait for a semaphore": """
semaphore = api.semaphore()
for stream in streams:
    api.wait_semaphore(stream, semaphore, 1)
    fill(stream)
threading.Thread(target=api.c.orStreamSynchronize, args=(streams[0],), daemon=True).start()
""",
    "threads that wait": """
fill(streams[0])
for name, argument in ("orDeviceSynchronize", ()), ("orFree", (device,)), ("orStreamSynchronize", (streams[0],)):
    threading.Thread(target=getattr(api.c, name), args=argument, daemon=True).start()
""",
    "threads that launch": """
def launch(stream):
    while api.c.orStreamDelay(stream, 10) == 0: pass
for stream in streams: threading.Thread(target=launch, args=(stream,), daemon=True).start()
time.sleep(0.005)
""",
    "a failed device": """
api.launch(None, native("getpid"))
fill(remote)
""",
    "a lost device": """
api.set_faults("lose:3")
for stream in streams:
    for _ in range(9):
        api.c.orStreamDelay(stream, 1000)
        api.c.orMemsetAsync(device, 1, size, stream)
""",
}
SCHEDULES = ({}, {"OPENREG_SCHEDULE_SEED": "7"}, {"OPENREG_POISON": "1"})
LEAVE = (
    "sys.exit(5)",
    "libc.exit(5)",
    "os._exit(5)",
    "threading.Thread(target=libc.exit, args=(5,)).start()",
)


def test_processes_end_at_once_whatever_is_queued(run_script: RunScript, request: pytest.FixtureRequest) -> None:
    # The three tables have lengths without a common factor, so that every combination comes.
    for number in range(request.config.getoption("--process-exits")):
        work = list(WORK)[number % len(WORK)]
        env, leave = SCHEDULES[number % len(SCHEDULES)], LEAVE[number % len(LEAVE)]
        body = "\n".join((SETUP, WORK[work], f"time.sleep({number % 5} * 0.0005)", leave))
        done = run_script(body, env=env)
        place = (number, work, env, leave)
        assert (done.code, done.errors) == (5, ""), place
