# SPDX-License-Identifier: BSD-3-Clause
"""The Sphinx directive `timeline`, which shows a program and a picture of the tasks that the device executed for it.

The argument is the picture's title, for screen readers. The content is the program. Lines above a line `---` are shown
and run once, and are not drawn. The lines below run once before they are recorded, because the first call of an
operator loads code and allocates memory. Options: `caption`, `environment` (environment variables, `NAME=value
NAME=value`), `draw` (a profiler range of the program: only this is drawn), `memory` (draws a curve of memory below the
tracks), `claim`.

A picture is of one run, and runs differ. `claim` is what the page says about the picture, as an expression of Python: a
run for which it is false is not drawn, and if no run shows the claim, the build fails. What runs show depends on the
machine's speed and load, so a build that is tested or published draws such a picture nevertheless (`-D
timeline_unshown=draw`), with a line in its log, and `nox -s timelines` fails. In the expression, `host(NAME)` is the
first operator or range on the host whose name begins so, `device(NAME)` is the first such task of the device,
`launches` are all calls that launch tasks, and `tasks` are all tasks, each in the order of their beginnings. They are
`openreg_profiler.trace.Slice` objects: their `begin`, `end` and `duration` are in microseconds.

Kernels are recorded with one OpenMP thread. Two threads that share a busy core wait for each other, which makes a small
kernel take a hundred times as long.

record.py runs the program in a process of its own, and openreg-profiler draws the picture. If the program fails, the
build of the site fails. The processes are forked from one that has imported torch and matplotlib.
"""

from __future__ import annotations

import atexit
import html
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.config import ENUM
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from openreg_testing.fresh import FreshPython

_LOGGER = logging.getLogger(__name__)

SEPARATOR = "---"
RECORD = Path(__file__).with_name("record.py")
ONE_THREAD = {"OPENREG_NUM_THREADS": "1"}
# The timeout in seconds of a program, which takes about one second. It ends programs that hang.
LIMIT = 600


class TimelineError(RuntimeError):
    """An error for a program that could not be drawn. Its text is the program's error."""


@cache
def _python() -> FreshPython:
    # A profile imports torch._dynamo, which takes as long as torch.
    python = FreshPython("torch._dynamo", "matplotlib.figure", "matplotlib.backends.backend_svg")
    atexit.register(python.close)
    return python


def draw(
    prepare: str,
    program: str,
    settings: dict[str, str],
    within: str = "",
    memory: bool = False,
    claim: str = "True",
    unshown: str = "fail",
) -> str:
    """Returns the picture of a program as SVG.

    Raises TimelineError if the program fails or has no task on a device, and, unless ``unshown`` is "draw", if no run
    does what the claim says.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.svg"
        source = Path(folder) / "program.txt"
        source.write_text(f"{prepare}\n{SEPARATOR}\n{program}", encoding="utf-8")
        command = [str(RECORD), str(source), str(picture), within, "memory" if memory else "", claim, unshown]
        try:
            done = _python().run(*command, env=environment | ONE_THREAD | settings, folder=folder, timeout=LIMIT)
        except subprocess.TimeoutExpired as error:
            raise TimelineError(f"the program did not end within {LIMIT} s") from error
        if done.returncode or not picture.exists():
            raise TimelineError(done.stderr.strip() or f"the program ended with status {done.returncode}")
        for line in done.stderr.splitlines():
            if line.startswith("none of "):
                _LOGGER.info(f"timeline: {line}")
        return picture.read_text(encoding="utf-8")


def as_figure(svg: str, title: str) -> str:
    """Returns the picture as HTML for a page, with a title for screen readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # The names of the parts are the same in each picture, and a page has several. Nothing refers to them.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = svg.replace("<svg", '<svg role="img"', 1)
    end = svg.index(">") + 1
    return f'<div class="timeline" tabindex="0">{svg[:end]}<title>{html.escape(title)}</title>{svg[end:]}</div>'


class TimelineDirective(SphinxDirective):
    """Shows the program and its picture."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {
        "caption": directives.unchanged_required,
        "environment": directives.unchanged_required,
        "draw": directives.unchanged_required,
        "memory": directives.flag,
        "claim": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Returns the code and the figure. A program that fails is an error of the build."""
        title = self.arguments[0]
        prepare, separator, program = "\n".join(self.content).rpartition(f"\n{SEPARATOR}\n")
        settings = dict(pair.split("=", 1) for pair in self.options.get("environment", "").split())
        try:
            within, memory = self.options.get("draw", ""), "memory" in self.options
            claim, unshown = self.options.get("claim", "True"), self.config.timeline_unshown
            svg = draw(prepare, program, settings, within, memory, claim, unshown)
        except TimelineError as error:
            raise self.error(f"{self.name}: {title}: {error}") from error
        shown: list[nodes.Node] = [self._block(prepare)] if separator else []
        figure = nodes.figure()
        figure["classes"].append("timeline-figure")
        figure += nodes.raw("", as_figure(svg, title), format="html")
        text, messages = self.state.inline_text(self.options.get("caption", title), self.lineno)
        figure += nodes.caption("", "", *text)
        return [*shown, self._block(program), figure, *messages]

    def _block(self, text: str) -> nodes.Node:
        block = nodes.literal_block(text.strip("\n"), text.strip("\n"))
        block["language"] = "python"
        self.set_source_info(block)
        return block


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the directive with Sphinx."""
    app.add_directive("timeline", TimelineDirective)
    app.add_config_value("timeline_unshown", "fail", "env", ENUM("fail", "draw"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
