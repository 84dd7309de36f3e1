# SPDX-License-Identifier: BSD-3-Clause
"""A process that examines entries one by one, as its parent asks; it may crash or hang at any of them."""

import faulthandler
import os
import warnings
from pathlib import Path


def serve(connection, log, table, settings):
    """Answers (index, dtype) with a report, until the parent closes the connection."""
    with Path(log).open("w", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    import torch

    import openreg_ops  # noqa: F401  (registers the operators)

    from . import entries
    from .examination import examine
    from .outcome import StandardError

    torch.set_num_threads(1)
    torch.set_warn_always(True)  # else a warning that PyTorch gives once is given on one of the devices only
    StandardError.path = Path(log)
    loaded = entries.load(table)
    connection.send("ready")
    while True:
        try:
            index, dtype = connection.recv()
        except EOFError:
            return
        report = examine(loaded[index], getattr(torch, dtype), **settings)
        connection.send(report.as_dictionary())
