# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: examines a PyTorch backend behind PrivateUse1 and reports each fault with its effect and its fix.

Commands call ``launch``, and ``command`` parses the arguments. ``children`` runs the code of ``probes`` in child
processes, because a backend's code may fail, crash or hang, and ``answers`` parses their reports. ``checks`` make
findings of the results, and ``terminal`` and ``document`` print them. ``backend`` reads what installed packages declare
about themselves, and ``table`` reads the hooks that PyTorch requires of any backend.

A check is a module of ``checks`` with ``TITLE``, ``POSITION`` in the report and ``check(examination)``, which yields
findings. Every module in that folder is a check, without a list. Other packages add checks by an entry point. A row of
hooks.toml that a call from Python can reach has an exercise with the row's key in ``probes``.

Only the children import torch or a backend, because these imports are part of what is examined. Imports inside this
package are relative, because children load it from its folder, wherever that is.
"""
