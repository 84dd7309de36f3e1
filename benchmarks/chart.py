# SPDX-License-Identifier: BSD-3-Clause
"""Draws results as SVG: the time on openreg relative to the CPU for every workload, and the curves of scaling.

python benchmarks/chart.py RESULTS [--chart FILE] [--curves FILE]

Equal results give equal files.
"""

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

from curves import CURVES, WITHIN
from results import BUSY, IN_BYTES, Families, load, ratio
from targets import TARGETS, mean_ratio, measured, worst_ratio

MET, ABOVE, NO_TARGET, LIMIT = "#1a7f37", "#cf5a00", "#8c959f", "#24292f"
# Opaque, so that it reads the same on GitHub's light and dark pages.
BACKGROUND, TEXT, GRID = "#ffffff", "#24292f", "#d8dee4"
STYLE = {
    "font.size": 8,
    "figure.facecolor": BACKGROUND,
    "axes.facecolor": BACKGROUND,
    "axes.edgecolor": GRID,
    "axes.labelcolor": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "grid.color": GRID,
    "svg.fonttype": "none",  # text stays text: small, and found by a search
    "svg.hashsalt": "openreg",  # names of parts of the file, otherwise random
}
ROW_HEIGHT = 0.17  # inches
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Row:
    """A row of the chart: a workload, or the mean of several. `limit` is None if it has no target of its own."""

    label: str
    ratio: float
    limit: float | None = None
    is_mean: bool = False

    @property
    def color(self) -> str:
        """Returns the color of the row, which shows whether the target is met."""
        if self.limit is None:
            return NO_TARGET
        return MET if self.ratio <= self.limit else ABOVE


Section = list[Row]


def rows(families: Families) -> dict[str, Section]:
    """Returns the rows of the workloads that both devices have, by family.

    The mean that a target limits follows the last of the target's workloads.
    """
    alone = {name: item for item in TARGETS if item.reduce is worst_ratio for name in item.workloads}
    means = {item.workloads[-1]: item for item in TARGETS if item.reduce is mean_ratio}
    found: dict[str, Section] = {}
    for family, workloads in families.items():
        section: Section = []
        for name, numbers in workloads.items() if family not in IN_BYTES else ():
            if (value := ratio(numbers)) is not None:
                section.append(Row(name, value, alone[name].limit if name in alone else None))
            if name in means and (mean := measured(means[name], workloads)):
                section.append(Row(means[name].text, mean.value, means[name].limit, is_mean=True))
        if section:
            found[family] = section
    return found


def columns(sections: dict[str, Section]) -> list[dict[str, Section]]:
    """Returns the families in two columns of about equal length, in their order."""
    total = sum(map(len, sections.values()))
    left: dict[str, Section] = {}
    right: dict[str, Section] = {}
    count = 0
    for family, section in sections.items():
        (left if count + len(section) / 2 <= total / 2 or not left else right)[family] = section
        count += len(section)
    return [column for column in (left, right) if column]


def draw_family(axes, family: str, section: Section, extent: tuple[float, float]) -> None:
    """Draws one dot per workload, the marks of the targets, and the line at which both devices are equally fast."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.axvline(1.0, color=TEXT, linewidth=0.8)
    for number, row in enumerate(section):
        axes.plot(row.ratio, number, "D" if row.is_mean else "o", markersize=4, color=row.color)
        if row.limit is not None:
            axes.plot(row.limit, number, "|", markersize=8, markeredgewidth=1.6, color=LIMIT)
    axes.set_title(family, loc="left", fontsize=9, fontweight="bold")
    axes.set_yticks(range(len(section)), [row.label for row in section])
    axes.set_ylim(len(section) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(*extent)
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in TICKS if extent[0] <= tick <= extent[1]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.tick_params(length=0)
    axes.grid(axis="x", linewidth=0.5)
    axes.set_axisbelow(True)


def caption(results: dict, families: Families) -> str:
    """Returns the text about the machine and the processes on which the numbers of these families depend."""
    counts = {len(values) for family in families.values() for numbers in family.values() for values in numbers.values()}
    processes = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    machine, settings = results["machine"], results["settings"]
    busy = ", while the machine had other work" if settings.get("load before", 0) > BUSY else ""
    return (
        f"torch {machine['torch']}, {machine['system']}, {machine['processors']} processors; "
        f"medians of {processes} processes per device{busy}"
    )


def draw_ratios(results: dict, path: Path) -> None:
    """Draws the chart of all workloads that both devices have."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    sections = rows(results["families"])
    drawn = {
        family: {name: numbers for name, numbers in results["families"][family].items() if ratio(numbers) is not None}
        for family in sections
    }
    values = [row.ratio for section in sections.values() for row in section]
    extent = (min(0.5, *values) / 1.15, max(2.0, *values) * 1.15)
    parts = columns(sections)
    longest = max(sum(len(section) + 3 for section in part.values()) for part in parts)
    marks = (("o", MET, "target met"), ("o", ABOVE, "not met"), ("o", NO_TARGET, "no target of its own"))
    marks += (("D", NO_TARGET, "geometric mean"), ("|", LIMIT, "target"))
    with rc_context(STYLE):
        figure = Figure(figsize=(11, longest * ROW_HEIGHT + 1), layout="constrained")
        figure.suptitle(f"Time on openreg / time on the CPU: less is better\n{caption(results, drawn)}", fontsize=9)
        halves = figure.subfigures(1, len(parts), squeeze=False)[0]
        for part, subfigure in zip(parts, halves, strict=True):
            grid = subfigure.subplots(
                len(part), 1, squeeze=False, height_ratios=[len(item) + 1 for item in part.values()]
            )
            for axes, (family, section) in zip(grid[:, 0], part.items(), strict=True):
                draw_family(axes, family, section, extent)
        handles = [Line2D([], [], marker=mark, linestyle="", color=color, label=label) for mark, color, label in marks]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(marks), frameon=False, fontsize=7)
        write(figure, path)


def draw_curves(results: dict, path: Path) -> None:
    """Draws the time per launch relative to the first point of each curve."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    family = results["families"].get("scaling", {})
    with rc_context(STYLE):
        figure = Figure(figsize=(11, 2.6), layout="constrained")
        figure.suptitle(
            f"Time per launch, relative to the first point; dashed: 20 % more\n{caption(results, {'scaling': family})}",
            fontsize=9,
        )
        for axes, curve in zip(figure.subplots(1, len(CURVES), sharey=True), CURVES, strict=True):
            times = [statistics.median(family[curve.workload(count)]["openreg"]) for count in curve.counts]
            relative = [time / times[0] for time in times]
            axes.axhline(WITHIN, color=LIMIT, linewidth=0.8, linestyle="--")
            axes.plot(curve.counts, relative, "o-", markersize=3, linewidth=1, color=MET)
            axes.set_title(curve.what, fontsize=8)
            axes.set_xscale("log")
            axes.set_xticks(curve.counts)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(
                FuncFormatter(lambda tick, _: f"{tick / 1000:g}k" if tick >= 1000 else f"{tick:g}")
            )
            axes.set_ylim(0, max(1.5, axes.get_ylim()[1]))
            axes.grid(linewidth=0.5)
        write(figure, path)


def write(figure, path: Path) -> None:
    """Writes the figure as SVG, without the date, so that equal figures give equal files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    text = path.read_text("utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")


def draw(results: dict, ratios: Path | None, curves: Path | None) -> None:
    """Draws the files whose paths are given. Prints a message instead if the numbers of a file are missing."""
    if ratios and rows(results["families"]):
        draw_ratios(results, ratios)
        print(f"chart: {ratios}")
    elif ratios:
        print(f"no {ratios}: no workload was measured on both devices")
    if curves and "scaling" in results["families"]:
        draw_curves(results, curves)
        print(f"curves: {curves}")
    elif curves:
        print(f"no {curves}: scaling was not measured")


def main() -> None:
    """Draws the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="what run.py --json wrote")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="the ratios")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="the curves of scaling")
    options = parser.parse_args()
    draw(load(options.results), options.chart, options.curves)


if __name__ == "__main__":
    main()
