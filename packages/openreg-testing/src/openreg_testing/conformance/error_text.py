# SPDX-License-Identifier: BSD-3-Clause
"""The text of an exception in reports of one line."""


def first_line(error: BaseException | None, limit: int = 200) -> str:
    """Returns the type of an exception and the first line of its message, of at most `limit` characters.

    Returns only the type if the message is empty.
    """
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0][:limit]}" if lines else name
