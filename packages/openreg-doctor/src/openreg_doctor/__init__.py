# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: what is wrong with a PyTorch backend behind PrivateUse1, what that costs and how to mend it.

``launch`` is what commands call, ``command`` reads the arguments, ``children`` runs what may fail in processes of their
own, ``checks`` turn the answers into findings, ``terminal`` and ``document`` show them. ``probes`` is what runs in the
children, ``backend`` is what installed packages declare of themselves, ``table`` what PyTorch asks of any backend.

A check is a file of ``checks`` with ``TITLE``, ``POSITION`` in the report and ``check(examination)``, which yields
findings; it is found by being there. Other packages add theirs by an entry point. A row of hooks.toml that a call from
Python can reach has an exercise of the same name in ``probes``.

Nothing here imports torch or a backend, except in the children: importing them is part of what is examined. Everything
refers to its neighbours relatively, because children load this package by its folder, wherever that is.
"""
