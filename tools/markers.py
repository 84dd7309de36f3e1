# SPDX-License-Identifier: BSD-3-Clause
"""Patterns that find code of the repository in Markdown files.

An excerpt stands between two comments, which readers do not see. The first comment contains a call, and
tools/pages/excerpts.py writes its result between the two.
"""

from __future__ import annotations

import re

# The markers of cog inside of comments, because `]]]` alone also ends a tensor that a page prints.
BEGIN, BEGIN_ENDS, END = "<!--[[[cog", "]]]-->", "<!--[[[end]]]-->"
EXCERPT = re.compile(
    rf"(?ms)^ *{re.escape(BEGIN)} (?P<call>[^\n]*){re.escape(BEGIN_ENDS)}\n(?P<shown>.*?)^ *{re.escape(END)}$"
)

# A block of code that `nox -s recipe` adds to a copy of a package, below a sentence that names the file and the place.
ADDITION = re.compile(
    r"(?ms)^In `(?P<path>[^`\n]+)`,\s(?:(?P<where>after|before|instead of) the line with\s`(?P<line>[^`\n]+)`"
    r"|(?P<whole>at the end|a new file)):\n\n```\w+\n(?P<code>.*?)^```$"
)
