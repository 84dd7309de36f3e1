# SPDX-License-Identifier: BSD-3-Clause
"""Processes that may crash or hang without harm to the process that starts them.

``forks`` provides workers, which serve requests one after the other: ``server`` is the code of their processes,
``wire`` the form of their messages, and ``fork_safety`` says whether a process can still be forked. ``fresh`` runs a
whole program in a process of its own, forked from an interpreter that has imported torch, and ``fresh_children`` also
forks the programs that this program starts.
"""
