# SPDX-License-Identifier: BSD-3-Clause
"""The doctor, a command that examines a PyTorch backend behind PrivateUse1 and reports faults with effect and fix.

Words of this package:

- A *row* (of the hook table, hooks.toml) is one hook, name or registration that PyTorch uses. The rows are in groups,
  one per interface of PyTorch. The key of a row is "group.name", such as "guard.getStream".
- An *exercise* is a call from Python that fails if the backend lacks a row.
- A *step* is one thing that a child process runs and reports: an import, an exercise or a query.
- A *probe* is a step that examines the device, after the imports. If one ends the process, another child process
  continues after it.
- A *check* makes *findings* from the results of steps. A finding has a status, an effect and a fix. The status "unseen"
  means that the doctor could not check a row.

Commands call ``launch``, and ``command`` parses the arguments. ``children`` runs the code of ``probes`` in child
processes, because a backend's code may fail, crash or hang, and ``answers`` parses their reports. ``checks`` contains
the checks, and ``terminal`` and ``document`` print the findings. ``backend`` reads what installed packages declare
about themselves (doctor.toml), and ``table`` reads the hook table. ``projects`` has two commands that examine
nothing: they write and update the project of a backend.

Every module of ``checks`` is a check, without a list. Other packages add checks by an entry point. A row that a call
from Python can reach has an exercise with the row's key in ``probes``.

Only the children import torch or a backend, because these imports are examined, too. Imports inside this package are
relative, because children load it from its folder, wherever that is.
"""
