# SPDX-License-Identifier: BSD-3-Clause
"""The guide's own Sphinx directives and roles. Each rejects names that the repository does not have.

Directives: `diagram` and `package-diagram` (Graphviz), `settings`, `hooks`, `stubs`, `suites`, `c-api`,
`accelerator-api`.
Roles: `path`, `test`, `session`, `symbol`, `message`, and `setting`, which links to the table of settings.
docs/README.md tells an author how to use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers all directives and roles with Sphinx."""
    # Imported here, so that the tests of the pages can use guide.repository without loading Sphinx in each process.
    from guide.accelerator import AcceleratorApiDirective
    from guide.c_api import CApiDirective
    from guide.diagram import DiagramDirective, PackageDiagramDirective
    from guide.process import NewProcess
    from guide.roles import ROLES
    from guide.tables import (
        HooksDirective,
        InterfaceChangesDirective,
        SettingsDirective,
        StubsDirective,
        SuitesDirective,
    )

    app.add_directive("accelerator-api", AcceleratorApiDirective)
    app.add_directive("c-api", CApiDirective)
    app.add_directive("diagram", DiagramDirective)
    app.add_directive("package-diagram", PackageDiagramDirective)
    app.add_directive("settings", SettingsDirective)
    app.add_directive("hooks", HooksDirective)
    app.add_directive("interface-changes", InterfaceChangesDirective)
    app.add_directive("stubs", StubsDirective)
    app.add_directive("suites", SuitesDirective)
    app.add_transform(NewProcess)
    app.add_object_type("setting", "setting", objname="setting")
    for name, role in ROLES.items():
        app.add_role(name, role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
