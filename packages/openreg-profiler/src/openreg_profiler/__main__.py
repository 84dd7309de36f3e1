# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands ``python -m openreg_profiler view|picture|resources|counters TRACE``.

TRACE is a file that torch.profiler.profile.export_chrome_trace() has written, or a program that ran with the
environment variable OPENREG_PROFILE=TRACE.
"""

from __future__ import annotations

import argparse
import sys

from openreg_profiler import picture, resources, trace, view
from openreg_profiler._output_file import refuse_unwritable


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m openreg_profiler", description="Looks at traces of openreg devices."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("view", help="opens Perfetto's interface in the browser, without a network")
    command.add_argument("trace")
    command.add_argument("--port", type=int, default=0, help="where to listen on this machine (a free port)")
    command.add_argument("--no-browser", action="store_true", help="only says where the interface is")
    command = commands.add_parser("picture", help="draws a short stretch: streams, arrows, waits and memory")
    command.add_argument("trace")
    command.add_argument("picture", help="a file that ends with .svg, .png or .pdf")
    command.add_argument("--from", dest="begin", type=float, metavar="MS", help="milliseconds since the trace begins")
    command.add_argument("--to", dest="end", type=float, metavar="MS")
    command.add_argument("--range", metavar="NAME", help="the first range of record_function() with this name")
    command = commands.add_parser("resources", help="what engines, streams, copies and operators used")
    command.add_argument("trace")
    command.add_argument("--json", action="store_true", help="as JSON instead of tables")
    command = commands.add_parser("counters", help="adds engines and memory to a trace, as counters")
    command.add_argument("trace")
    command.add_argument("output")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns 0, or prints a message on standard error and returns 1 if it fails."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "view":
            view.view(options.trace, options.port, not options.no_browser)
        elif options.command == "picture":
            refuse_unwritable(options.picture)
            picture.draw(trace.read(options.trace), options.picture, options.begin, options.end, options.range)
        elif options.command == "counters":
            refuse_unwritable(options.output)
            resources.write_counters(trace.read(options.trace), options.output)
        else:
            measured = resources.measure(trace.read(options.trace))
            if options.json:
                print(measured.to_json())
            else:
                resources.show(measured)
    except (trace.TraceFileError, picture.PictureError, view.ViewError, OSError) as error:
        print(f"python -m openreg_profiler {options.command}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
