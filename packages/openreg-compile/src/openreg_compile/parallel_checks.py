# SPDX-License-Identifier: BSD-3-Clause
"""Makes kernels throw the exception of a failed check in a parallel loop after the loop.

Inductor writes checks of indices into the loops of its kernels, as ``TORCH_CHECK(condition, ...)``. An exception that
leaves the body of an OpenMP loop terminates the process. So the body of each parallel loop catches exceptions, the
kernel stores the first one, and throws it at its end.
"""

from __future__ import annotations

import re

_SIGNATURE = re.compile(r'extern "C"[^{;]*\{')
_LOOP = re.compile(r"#pragma omp for(?: collapse\((\d+)\))?[^\n]*\n")


def keep_failures(source: str) -> str:
    """Returns a kernel's source whose parallel loops catch exceptions, and which throws the first one at its end.

    Returns the source unchanged if it has no check or no parallel loop. Raises ValueError if brackets do not match.
    """
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
    """Returns the positions of the braces of a parallel loop's body; of collapsed loops, those of the innermost."""
    position = loop.end()
    for _ in range(int(loop.group(1) or 1)):
        position = text.index("for", position)
        position = _closing(text, text.index("(", position), "()")
        position = text.index("{", position)
    return position, _closing(text, position)


def _closing(text: str, opening: int, pair: str = "{}") -> int:
    """Returns the position of the bracket that closes the one at ``opening``.

    String literals count as code, which is correct because their brackets are balanced in generated kernels.
    """
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] == pair[0]) - (text[position] == pair[1])
        if depth == 0:
            return position
    raise ValueError(f"a kernel's source has no {pair[1]!r} for the {pair[0]!r} at character {opening}")
