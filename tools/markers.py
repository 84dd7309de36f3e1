# SPDX-License-Identifier: BSD-3-Clause
"""Between which lines an excerpt stands in a Markdown file: two comments, which readers do not see.

The first says what is shown, as a call that tools/excerpts.py answers; what is between them is written by it.
"""

from __future__ import annotations

import re

# Those of cog with the signs of a comment: `]]]` alone also ends a tensor that a page prints.
BEGIN, BEGIN_ENDS, END = "<!--[[[cog", "]]]-->", "<!--[[[end]]]-->"
EXCERPT = re.compile(
    rf"(?ms)^ *{re.escape(BEGIN)} (?P<call>[^\n]*){re.escape(BEGIN_ENDS)}\n(?P<shown>.*?)^ *{re.escape(END)}$"
)
