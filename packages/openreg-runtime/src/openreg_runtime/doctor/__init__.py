# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: what is wrong with a PyTorch backend, what that costs and how to mend it.

``command`` reads the arguments, ``children`` runs what may fail in processes of their own, ``checks`` turn the answers
into findings, ``terminal`` and ``document`` show them. ``probes`` is what runs in the children.

A check is a file of ``checks`` with ``TITLE``, ``POSITION`` in the report and ``check(examination)``, which yields
findings; it is found by being there. A row of docs/hooks.toml that a call from Python can reach has an exercise of the
same name in ``probes``.

Everything here refers to its neighbours relatively, because children load this package under another name: there,
importing ``openreg_runtime`` is part of what is examined.
"""
