# SPDX-License-Identifier: BSD-3-Clause
"""Draws a short stretch of a trace, an interval of time, for a page or a report.

The picture shows threads, streams, arrows, waits and memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from openreg_profiler.trace import Slice, TraceFile

# The largest number of boxes that a reader can distinguish.
MOST = 400
# The color of a box, by Kineto's category. The contrast of a name in it is at least 4.5, also in the guide's dark mode.
COLORS = {
    "kernel": "#4c78a8",
    "gpu_memcpy": "#fa963c",
    "gpu_memset": "#eeca3b",
    "cpu_op": "#bab0ac",
    "privateuse1_runtime": "#66b55c",
}
COLLECTIVE = "#c48cb3"
# The size of a name in a box, and of the legend, in points.
_SMALL = 9
# The number of letters of that size that fit in the width of the picture.
_LETTERS = 90
_HEIGHT = 0.8
# The minimum width of a box as a part of the picture, because the white edge would hide a narrower one.
_NARROWEST = 1 / 300


class PictureError(ValueError):
    """An error for a stretch that cannot be drawn, with the remedy in its message."""


def stretch(trace: TraceFile, begin: float | None, end: float | None, within: str | None) -> tuple[float, float]:
    """Returns the beginning and end of the part to draw, in microseconds of the trace.

    ``begin`` and ``end`` are milliseconds since the beginning of the trace; ``within`` is the name of a range. Raises
    :class:`PictureError` if there is no such range or the part is empty.
    """
    first, last = trace.begin, trace.end
    if within is not None:
        found = [item for item in trace.host if item.name == within and item.category == "user_annotation"]
        if not found:
            raise PictureError(f"{trace.path} has no range {within!r}; give the name of a record_function()")
        first, number = found[0].begin, found[0].args.get("External id")
        # The range also has a slice on each stream whose tasks were launched in it.
        own = [item.end for item in trace.ranges if item.name == within and item.args.get("External id") == number]
        last = max([found[0].end, *own])
    if begin is not None:
        first = trace.begin + begin * 1000
    if end is not None:
        last = trace.begin + end * 1000
    if not first < last:
        raise PictureError("the stretch is empty: its end has to come after its beginning")
    return first, last


def _outermost(slices: Iterable[Slice]) -> list[Slice]:
    """Returns the operators that no other operator called."""
    result: list[Slice] = []
    for item in slices:
        if not result or item.begin >= result[-1].end:
            result.append(item)
    return result


def draw(
    trace: TraceFile,
    path: str | Path,
    begin: float | None = None,
    end: float | None = None,
    within: str | None = None,
) -> None:
    """Writes a picture in the format of the file name's suffix: .svg, .png or .pdf.

    ``begin`` and ``end`` are milliseconds since the beginning of the trace; ``within`` is the name of a
    ``record_function()`` range. Raises :class:`PictureError` if the stretch is empty or has too many boxes, or if
    matplotlib is missing. Raises OSError if the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PictureError(
            "pictures are drawn by the package matplotlib, which is not installed. Install it with: "
            'pip install "openreg-profiler[picture]"'
        ) from error
    first, last = stretch(trace, begin, end, within)

    def inside(items: Iterable[Slice]) -> list[Slice]:
        return [item for item in items if item.end > first and item.begin < last]

    host, work, waits = inside(trace.host), inside(trace.work), inside(trace.waits)
    rows = _rows(trace, [*host, *inside(trace.launches)], work, waits)
    boxes = sum(len(items) for _, items in rows)
    if not work and not waits:
        raise PictureError(f"nothing of a device lies between {first:.0f} and {last:.0f} us; choose another stretch")
    if boxes > MOST:
        raise PictureError(
            f"the stretch has {boxes} boxes, and a picture can show {MOST}; choose a shorter one with --from and --to "
            "(milliseconds), or --range NAME"
        )
    has_memory = any(first <= item.time <= last for item in trace.memory)
    figure = Figure(figsize=(10, 0.9 + 0.55 * len(rows) + (1.3 if has_memory else 0)), layout="constrained")
    axes = figure.subplots(
        2 if has_memory else 1, sharex=True, squeeze=False, height_ratios=[len(rows), 2] if has_memory else None
    )[:, 0]
    _draw_rows(axes[0], rows, first, last)
    _draw_arrows(axes[0], trace, rows, first, last)
    if has_memory:
        _draw_memory(axes[1], trace, first, last)
    axes[0].set_xlim(0, last - first)
    _name_time(axes[-1], last - first)
    try:
        figure.savefig(path)
    except ValueError as error:
        raise PictureError(f"{path}: {error}") from error


# A track of the picture: (its name, process or device, thread or stream), and its boxes.
TrackRow = tuple[tuple[str, Any, Any], list[Slice]]


def _rows(trace: TraceFile, host: list[Slice], work: list[Slice], waits: list[Slice]) -> list[TrackRow]:
    """Returns the tracks from top to bottom, each with its boxes: first threads that launch, then streams.

    A launch outside operators, such as that of a graph, has its own box.
    """
    rows: list[TrackRow] = []
    operators: dict[tuple[Any, Any], list[Slice]] = {}
    for item in sorted(host, key=lambda item: (item.begin, -item.end)):
        if item.category in ("cpu_op", "privateuse1_runtime"):
            operators.setdefault((item.process, item.track), []).append(item)
    for index, (thread, items) in enumerate(sorted(operators.items(), key=lambda entry: entry[1][0].begin)):
        rows.append((("host" if index == 0 else f"host, thread {index + 1}", *thread), _outermost(items)))
    several = len({device for device, _ in trace.streams}) > 1
    for (device, number), stream in sorted(trace.streams.items()):
        items = [item for item in [*work, *waits] if (item.process, item.track) == (device, number)]
        if items:
            name = f"openreg:{device} {stream.name}" if several else stream.name
            rows.append(((name, device, number), items))
    return rows


def _draw_rows(axes: Any, rows: list[TrackRow], first: float, last: float) -> None:
    for height, (_, items) in enumerate(rows):
        for item in items:
            begin, end = max(item.begin, first) - first, min(item.end, last) - first
            is_wait = item.category == "gpu_user_annotation"
            fill = "white" if is_wait else COLLECTIVE if item.is_collective else COLORS[item.category]
            axes.barh(
                height,
                max(end - begin, (last - first) * _NARROWEST),
                left=begin,
                height=_HEIGHT,
                color=fill,
                edgecolor="#888888" if is_wait else "white",
                hatch="///" if is_wait else None,
                linewidth=0.5,
            )
            _write(
                axes, item.name.removeprefix("aten::").removeprefix("c10d::"), begin, end, height, last - first, fill
            )
    axes.set_yticks(range(len(rows)), [name for (name, *_), _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _name_time(axes: Any, span: float) -> None:
    """Labels the time axis in microseconds, or in milliseconds from 20 000 microseconds on."""
    scale, name = (1000, "milliseconds") if span >= 20_000 else (1, "microseconds")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / scale:g}")
    axes.set_xlabel(name)


def _write(axes: Any, text: str, begin: float, end: float, height: float, span: float, fill: str) -> None:
    """Writes a name into its box, shortened if necessary, unless the box is too narrow."""
    room = int((end - begin) / span * _LETTERS)
    if room >= min(len(text), 4):
        shown = text if len(text) <= room else text[: room - 1] + "…"
        # The other colors are too light for white text, and become too dark for it on a page in dark mode.
        color = "white" if fill == COLORS["kernel"] else "black"
        # The hatches of a wait would cross the text.
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1} if fill == "white" else None
        axes.text(
            (begin + end) / 2,
            height,
            shown,
            ha="center",
            va="center",
            fontsize=_SMALL,
            color=color,
            bbox=box,
            clip_on=True,
        )


def _draw_arrows(axes: Any, trace: TraceFile, rows: list[TrackRow], first: float, last: float) -> None:
    """Draws arrows from launches to tasks, and dashed ones from event records to the ends of waits for them."""
    heights = {(process, track): height for height, ((_, process, track), _) in enumerate(rows)}
    lines = [(arrow.thread, arrow.launched, arrow.stream, arrow.started, "-") for arrow in trace.arrows]
    lines += [(item.stream, item.done, item.waiting, item.released, "--") for item in trace.dependencies]
    for tail, begin, head, end, style in lines:
        if begin < first or end > last or tail not in heights or head not in heights:
            continue
        tail_height, head_height = heights[tail], heights[head]
        edge = _HEIGHT / 2 if tail_height < head_height else -_HEIGHT / 2
        axes.annotate(
            "",
            xy=(end - first, head_height - edge),
            xytext=(begin - first, tail_height + edge),
            arrowprops={"arrowstyle": "->", "color": "#555555", "linewidth": 0.6, "linestyle": style},
            zorder=0.5,  # behind the boxes of rows between the two, whose names it would cross
        )


def _draw_memory(axes: Any, trace: TraceFile, first: float, last: float) -> None:
    most = max(item.allocated for item in trace.memory)
    scale, unit = (1 << 20, "MiB") if most >= 10 << 20 else (1 << 10, "KiB")
    for device in sorted({item.device for item in trace.memory}):
        items = [item for item in trace.memory if item.device == device and item.time <= last]
        before = [item for item in items if item.time < first][-1:]
        shown = [*before, *(item for item in items if item.time >= first)]
        times = [max(item.time, first) - first for item in shown] + [last - first]
        sizes = [item.allocated / scale for item in shown]
        axes.step(times, [*sizes, sizes[-1]] if sizes else [0], where="post", label=f"openreg:{device}")
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right", fontsize=_SMALL, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
