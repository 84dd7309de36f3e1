# SPDX-License-Identifier: BSD-3-Clause
"""Shows results: a table with a section for each family, and the targets.

python benchmarks/report.py FILE
"""

import argparse
from pathlib import Path

import targets
from results import Families, load, median_and_spread, ratio


def show(families: Families) -> None:
    """Prints the medians, spreads and ratios of all workloads."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="medians of the processes (± half the distance of the quartiles)")
    for title in ("workload", "openreg", "CPU", "openreg / CPU"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for family, workloads in families.items():
        table.add_section()
        table.add_row(f"[bold]{family}[/]", "", "", "")
        for name, numbers in workloads.items():
            cells = [median_and_spread(numbers.get(device), family) for device in ("openreg", "cpu")]
            compared = ratio(numbers)
            table.add_row(f"  {name}", *cells, "" if compared is None else f"{compared:.2f}")
    Console(width=120).print(table)


def main() -> None:
    """Shows the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="what run.py --json wrote")
    families = load(parser.parse_args().file)["families"]
    show(families)
    targets.show(targets.judge(families))


if __name__ == "__main__":
    main()
