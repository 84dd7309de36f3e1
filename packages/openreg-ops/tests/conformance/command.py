# SPDX-License-Identifier: BSD-3-Clause
"""The command line, and the run that tests use too."""

import argparse
import fnmatch
import json
import os
from pathlib import Path

from . import entries
from .examination import CHECKS
from .pool import Pool
from .scorecard import Scorecard

TABLE = "torch.testing._internal.common_methods_invocations:op_db"
FLAG_SAMPLES = "flag_samples:TABLE"
SECONDS_PER_ENTRY = 300
APART = "flags"  # under a schedule of its own, in processes of its own


def quick(ops=()):
    """What the default lane runs: every entry in one dtype, float32 where it has it, with a few of its variants."""
    return run(
        ("float32", "first"),
        ops,
        checks=("forward", "backward", "in-place", "overloads", "layouts", "writes", "errors", "dtypes"),
        variant_samples=2,
        record_operators=True,
    )


def quick_flags(table=TABLE, dtypes=("float32", "int64", "first")):
    """What the default lane runs of the flags: one sample per entry, floating-point and integer."""
    return run(dtypes, checks=(APART,), variant_samples=1, table=table)


def run(dtypes=(), ops=(), checks=CHECKS, jobs=None, limit=SECONDS_PER_ENTRY, table=TABLE, **settings):
    """A scorecard of the entries and dtypes that match; empty choices mean all. Settings are those of examine().

    The dtype "first" stands for the first one of each entry.
    """
    loaded = entries.load(table)
    wanted = [entries.name_of(dtype) for dtype in entries.DTYPES]
    tasks = [
        (index, op.full_name, entries.name_of(dtype))
        for dtype in entries.DTYPES
        for index, op in enumerate(loaded)
        if dtype in entries.dtypes_of(op)
        and matches(op, dtype, dtypes or wanted)
        and (not ops or any(fnmatch.fnmatchcase(op.full_name, pattern) for pattern in ops))
    ]
    together = tuple(check for check in checks if check != APART)
    reports = {}
    for part in filter(None, (together, (APART,) if APART in checks else ())):
        pool = Pool(jobs or os.cpu_count() or 1, limit, table, {"checks": part, **settings})
        for report in pool.run(tasks):
            add_report(reports, report)
    reports = sorted(reports.values(), key=lambda report: (wanted.index(report["dtype"]), report["name"]))
    complete = not dtypes and not ops and set(checks) == set(CHECKS) and table == TABLE
    return Scorecard(reports, len(loaded), complete)


def add_report(reports, report):
    """Adds a report of the checks that run apart to that of the others."""
    first = reports.setdefault((report["name"], report["dtype"]), report)
    if first is not report:
        first["failures"].update(report["failures"])
        first["flags"] = report.get("flags", [])


def matches(op, dtype, dtypes):
    return entries.name_of(dtype) in dtypes or ("first" in dtypes and dtype == entries.dtypes_of(op)[0])


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--dtype", action="append", default=[], help="only this dtype; may be repeated")
    parser.add_argument("--op", action="append", default=[], help="only entries of this name or pattern")
    parser.add_argument("--check", action="append", choices=CHECKS, help="only this check; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that share the work")
    parser.add_argument("--limit", type=float, default=SECONDS_PER_ENTRY, help="seconds that an entry may take")
    parser.add_argument("--table", default=TABLE, help="module:attribute of another table of entries")
    parser.add_argument("--json", type=Path, help="file to write the scorecard and all reports to")
    options = parser.parse_args(arguments)
    card = run(options.dtype, options.op, options.check or CHECKS, options.jobs, options.limit, options.table)
    if options.json:
        options.json.write_text(json.dumps(card.as_dictionary(), indent=1), "utf-8")
    card.show()
    cards = [card]
    if APART in (options.check or CHECKS) and options.table == TABLE and not options.op:
        cards.append(run(options.dtype, (), (APART,), options.jobs, options.limit, FLAG_SAMPLES))
        cards[-1].show()
    return 1 if any(card.problems() or not card.reports for card in cards) else 0
