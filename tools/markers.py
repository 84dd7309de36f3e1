# SPDX-License-Identifier: BSD-3-Clause
"""Where code of the repository stands in a Markdown file.

An excerpt stands between two comments, which readers do not see. The first says what is shown, as a call that
tools/excerpts.py answers; what is between them is written by it.
"""

from __future__ import annotations

import re

# Those of cog with the signs of a comment: `]]]` alone also ends a tensor that a page prints.
BEGIN, BEGIN_ENDS, END = "<!--[[[cog", "]]]-->", "<!--[[[end]]]-->"
EXCERPT = re.compile(
    rf"(?ms)^ *{re.escape(BEGIN)} (?P<call>[^\n]*){re.escape(BEGIN_ENDS)}\n(?P<shown>.*?)^ *{re.escape(END)}$"
)

# A block of code that `nox -s recipe` adds to a copy of a package, below the file and the place where it belongs.
ADDITION = re.compile(
    r"(?ms)^In `(?P<path>[^`\n]+)`,\s(?:(?P<where>after|before|instead of) the line with\s`(?P<line>[^`\n]+)`"
    r"|(?P<whole>at the end|a new file)):\n\n```\w+\n(?P<code>.*?)^```$"
)
