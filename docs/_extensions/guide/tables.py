# SPDX-License-Identifier: BSD-3-Clause
"""The Sphinx directives `settings`, `hooks`, `interface-changes`, `stubs` and `suites`: tables that the build makes."""

from __future__ import annotations

import ast
import itertools
import os
import runpy
from dataclasses import asdict
from pathlib import Path

from docutils import nodes
from sphinx.domains.std import StandardDomain
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

from guide.repository import ROOT, settings
from openreg_doctor import declarations
from tools import hooks

# The folder of the conformance suites, one file each.
_SUITES = ROOT / "packages/openreg-testing/src/openreg_testing/conformance/suites"
# The fields of a setting in a doctor.toml that its row shows.
_CELLS = ("example", "default", "meaning")


def undocumented(declared: dict[str, dict[str, str]], read: frozenset[str]) -> list[str]:
    """Returns one line for each setting that is only read, only declared, or declared without a field."""
    named = {name for name in declared if name.startswith("OPENREG_")}
    return [
        *(f"{name}: read by the code, declared in no doctor.toml" for name in sorted(read - named)),
        *(f"{name}: declared in a doctor.toml, read by no code" for name in sorted(named - read)),
        *(f"{name}: declared without {key}" for name, row in declared.items() for key in _CELLS if not row.get(key)),
    ]


class TableDirective(SphinxDirective):
    """The base of directives that show a table whose cells are Markdown."""

    def markdown(self, text: str) -> list[nodes.Node]:
        """Returns the nodes of a piece of Markdown."""
        return self.parse_text_to_nodes(text)

    def table(self, heads: list[str], rows: list[list[list[nodes.Node]]], widths: list[int]) -> nodes.table:
        """Returns a table of these cells."""
        group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(widths))
        head_cells = [nodes.entry("", nodes.paragraph("", head)) for head in heads]
        group += nodes.thead("", nodes.row("", *head_cells))
        group += nodes.tbody("", *(nodes.row("", *(nodes.entry("", *cell) for cell in row)) for row in rows))
        return nodes.table("", group, classes=["wide-table", f"{self.name}-table", "colwidths-given"])

    def section(self, key: str, title: str) -> nodes.section:
        """Returns a section with a title, whose id is made of the directive's name and the key."""
        section = nodes.section(ids=[make_id(self.env, self.state.document, self.name, key)])
        section += nodes.title("", title)
        return section


class SettingsDirective(TableDirective):
    """Shows the environment variables. Each is the target of links by the role `setting`."""

    def run(self) -> list[nodes.Node]:
        """Returns the table. A difference between the declarations and the code is an error of the build."""
        packages = hooks.declarations(ROOT)
        for item in packages:
            self.env.note_dependency(str(ROOT / item.place))
        declared = {setting.name: asdict(setting) for item in packages for setting in item.content.settings}
        owners = {setting.name: item.package.name for item in packages for setting in item.content.settings}
        problems = undocumented(declared, settings())
        if problems:
            raise self.error("settings: " + "; ".join(problems))
        standard = self.env.get_domain("std")
        assert isinstance(standard, StandardDomain)
        cells: list[list[list[nodes.Node]]] = []
        for name, row in declared.items():
            label = make_id(self.env, self.state.document, "setting", name)
            target = nodes.paragraph("", "", nodes.literal("", name), ids=[label])
            self.state.document.note_explicit_target(target)
            standard.note_object("setting", name, label, location=target)
            shown = [*(row[cell] for cell in _CELLS), f"`{owners[name]}`"]
            cells.append([[target], *map(self.markdown, shown)])
        return [self.table(["variable", *_CELLS, "package"], cells, [30, 20, 15, 50, 20])]


def suite_rows(folder: Path = _SUITES) -> list[tuple[str, int, str]]:
    """Returns the name, the number of test functions and the purpose of each conformance suite.

    The purpose is the first paragraph of the file's docstring.
    """
    rows = []
    for path in sorted(folder.glob("test_*.py")):
        module = ast.parse(path.read_text("utf-8"))
        tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        purpose = " ".join((ast.get_docstring(module) or "").split("\n\n")[0].split())
        rows.append((path.stem.removeprefix("test_"), len(tests), purpose))
    return rows


class SuitesDirective(TableDirective):
    """Shows the conformance suites of openreg-testing."""

    def run(self) -> list[nodes.Node]:
        """Returns the table."""
        for path in _SUITES.glob("test_*.py"):
            self.env.note_dependency(str(path))
        rows = [
            [self.markdown(f"`{name}`"), self.markdown(str(tests)), self.markdown(purpose)]
            for name, tests, purpose in suite_rows()
        ]
        return [self.table(["suite", "tests", "what it checks"], rows, [15, 8, 90])]


class HooksDirective(TableDirective):
    """Shows the hook table, with links to the code and the tests of each row."""

    def run(self) -> list[nodes.Node]:
        """Returns a section for each interface."""
        tests = hooks.covering_tests(ROOT)
        files = {Path(test.partition("::")[0]) for covering in tests.values() for test in covering}
        for path in files.union({hooks.TABLE}, (item.place for item in hooks.declarations(ROOT))):
            self.env.note_dependency(str(ROOT / path))
        found: list[nodes.Node] = []
        for group in hooks.load(ROOT):
            section = self.section(group.key, group.title)
            section += self.markdown(group.about)
            rows = [
                [
                    self.markdown(", ".join(f"`{name}`" for name in row.names)),
                    self.markdown(row.reader),
                    self.markdown(row.status or (f"since {row.since}" if row.since else "")),
                    self.markdown(", ".join(map(self.link, row.code))),
                    self.markdown("; ".join(map(self.test, hooks.tests_of(row, tests)))),
                ]
                for row in group.rows
            ]
            section += self.table(["hook", "used by", "note", "code", "tests"], rows, [28, 28, 16, 18, 30])
            found.append(section)
        return found

    def link(self, path: str) -> str:
        """Returns a link in Markdown from the page to a file of a package, whose name begins without `openreg-`."""
        page = Path(self.env.doc2path(self.env.docname)).parent
        target = Path(os.path.relpath(ROOT / path, page)).as_posix()
        return f"[`{path.removeprefix('packages/openreg-')}`](path:{target})"

    def test(self, test: str) -> str:
        """Returns the name of a test as words, after a link to its file."""
        path, _, function = test.partition("::")
        return f"{self.link(path)}: {function.removeprefix('test_').replace('_', ' ')}"


class InterfaceChangesDirective(TableDirective):
    """Shows what each release of PyTorch changed in the interfaces of the hook table, by the doctor's record."""

    def run(self) -> list[nodes.Node]:
        """Returns a section for each recorded release but the first."""
        groups = hooks.load(ROOT)
        for path in (hooks.TABLE, hooks.TABLE.with_name(declarations.RECORD)):
            self.env.note_dependency(str(ROOT / path))
        record = declarations.read_record()
        found: list[nodes.Node] = []
        for before, after in itertools.pairwise(record):
            section = self.section(after, f"Functions of {after}")
            rows = [self.row(change) for change in declarations.differences(groups, record[before], record[after])]
            section += self.table(["function", "signature", "used by", "what to do"], rows, [30, 34, 28, 28])
            found.append(section)
        return found

    def row(self, change: declarations.Difference) -> list[list[nodes.Node]]:
        """Returns the cells of one function: name, what changed, and its row of the hook table."""
        hook = next(row for row in change.group.rows if change.function in row.names)
        without = f"; without it, {hook.cost}" if hook.cost else ""
        signatures = [change.after or "gone"]
        if change.before:
            signatures.append(f"before: {change.before}")
        return [
            self.markdown(f"`{change.group.class_name}` `{change.function}`"),
            [nodes.paragraph("", "", nodes.literal("", text)) for text in signatures],
            self.markdown(hook.reader),
            self.markdown(hook.status or f"implement it{without}"),
        ]


class StubsDirective(TableDirective):
    """Shows the stubs of the installed PyTorch, as the script of openreg-ops lists them."""

    SCRIPT = ROOT / "packages" / "openreg-ops" / "tools" / "stubs.py"

    def run(self) -> list[nodes.Node]:
        """Returns a section for each header of PyTorch."""
        self.env.note_dependency(str(self.SCRIPT))
        found: list[nodes.Node] = []
        for header, listed in itertools.groupby(
            runpy.run_path(str(self.SCRIPT))["rows"](), lambda row: row.stub.header
        ):
            section = self.section(header, header)
            rows: list[list[list[nodes.Node]]] = [
                [
                    self.code(row.stub.name),
                    [nodes.paragraph("", "yes" if row.is_exported else "no: not exported")],
                    self.code(row.operator),
                    self.code(row.called_by),
                    self.code(row.stub.function),
                ]
                for row in listed
            ]
            section += self.table(
                ["stub", "can be registered", "operator", "called by", "kernel"], rows, [24, 14, 20, 24, 34]
            )
            found.append(section)
        return found

    def code(self, text: str) -> list[nodes.Node]:
        """Returns a name as code, or nothing for an empty one."""
        return [nodes.paragraph("", "", nodes.literal("", text))] if text else []
