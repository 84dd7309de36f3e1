# SPDX-License-Identifier: BSD-3-Clause
"""Lets a check in a parallel loop fail: an exception that left the loop would end the process.

Inductor writes checks of indices into the loops of its kernels, as ``TORCH_CHECK(condition, ...)``. OpenMP lets no
exception out of the thread that threw it, so each pass of the loop keeps the first one, and the kernel throws it at its
end.
"""

from __future__ import annotations

import re

_SIGNATURE = re.compile(r'extern "C"[^{;]*\{')
_LOOP = re.compile(r"#pragma omp for(?: collapse\((\d+)\))?[^\n]*\n")


def keep_failures(source: str) -> str:
    """The source of a kernel whose parallel loops keep exceptions; the same source where none is thrown in them."""
    start = _SIGNATURE.search(source)
    if start is None or "TORCH_CHECK(" not in source or "#pragma omp for" not in source:
        return source
    end = _closing(source, start.end() - 1)
    body = source[start.end() : end]
    bodies = sorted((_loop_body(body, loop) for loop in _LOOP.finditer(body)), reverse=True)
    for first, last in bodies:
        inside = body[first + 1 : last]
        body = f"{body[: first + 1]} try {{{inside}}} catch (...) {{ openreg_failure.keep(); }} {body[last:]}"
    return (
        f"{source[: start.end()]}\n    openreg::compile::FirstException openreg_failure;{body}"
        f"    openreg_failure.rethrow();\n{source[end:]}"
    )


def _loop_body(text: str, loop: re.Match[str]) -> tuple[int, int]:
    """Where the braces of what a parallel loop repeats stand; of collapsed loops, of the innermost."""
    position = loop.end()
    for _ in range(int(loop.group(1) or 1)):
        position = text.index("for", position)
        position = _closing(text, text.index("(", position), "()")
        position = text.index("{", position)
    return position, _closing(text, position)


def _closing(text: str, opening: int, pair: str = "{}") -> int:
    """Where the bracket closes that opens there. Literals in kernels have balanced ones."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] == pair[0]) - (text[position] == pair[1])
        if depth == 0:
            return position
    raise ValueError(f"a kernel's source has no {pair[1]!r} for the {pair[0]!r} at character {opening}")
