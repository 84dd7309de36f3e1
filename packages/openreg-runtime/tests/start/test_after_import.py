# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks run once a module has been imported, on the importing thread and in order, also after failed imports."""

import importlib
import importlib.util
import runpy
import sys
import threading
import time
import types
import warnings
import zipfile

import pytest

import openreg_runtime
from openreg_runtime import after_import


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Makes modules that can be imported and were not; gives the name back."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def make(code="", name="vendor_module"):
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, "utf-8")
        importlib.invalidate_caches()
        made.append(name)
        return name

    yield make
    for name in {name.partition(".")[0] for name in made}:
        for loaded in [item for item in sys.modules if item.partition(".")[0] == name]:
            del sys.modules[loaded]


def test_a_module_that_is_imported_already_calls_at_once_on_the_same_thread():
    calls = []
    after_import("json", lambda found: calls.append((found, threading.get_ident())))
    assert calls == [(sys.modules["json"], threading.get_ident())]


def test_an_error_is_the_callers_where_the_module_is_imported_already():
    with pytest.raises(ZeroDivisionError):
        after_import("json", lambda _: 1 / 0)


def test_a_later_import_calls_once_with_the_module_complete(module):
    name = module("value = 1")
    calls = []
    after_import(name, lambda found: calls.append(found.value))
    assert calls == []
    assert name not in sys.modules
    importlib.import_module(name)
    assert calls == [1]
    importlib.reload(sys.modules[name])
    del sys.modules[name]
    importlib.import_module(name)
    assert calls == [1]


def test_it_imports_nothing(module):
    package = module("", "vendor_package.__init__").removesuffix(".__init__")
    part = module("", "vendor_package.part")
    after_import(part, lambda _: None)
    assert not {package, part} & set(sys.modules)


def test_a_submodule_is_the_argument_before_it_is_an_attribute(module):
    module("", "vendor_package.__init__")
    module("value = 2", "vendor_package.part")
    calls = []

    def call(found):
        package = sys.modules["vendor_package"]
        calls.append((found.value, hasattr(package, "part")))
        from vendor_package import part

        assert part is found

    after_import("vendor_package.part", call)
    importlib.import_module("vendor_package.part")
    assert calls == [(2, False)]


def test_callbacks_run_in_the_order_of_registration_also_those_of_callbacks(module):
    name = module()
    calls = []

    def first(_):
        calls.append("first")
        after_import(name, lambda _: calls.append("third"))

    def second(_):
        calls.append("second")

    after_import(name, first)
    after_import(name, second)
    after_import(name, second)
    importlib.import_module(name)
    assert calls == ["first", "second", "second", "third"]


def test_one_callback_may_wait_for_the_module_that_another_imports(module):
    module("", "vendor_b")
    name = module("", "vendor_a")
    calls = []
    after_import("vendor_b", lambda _: calls.append("b"))
    after_import(name, lambda _: (importlib.import_module("vendor_b"), calls.append("a")))
    importlib.import_module(name)
    assert calls == ["b", "a"]


REGISTERS = """
import openreg_runtime
calls = []
openreg_runtime.after_import(__name__, lambda module: calls.append(hasattr(module, "complete")))
complete = True
"""


def test_a_module_that_is_being_imported_counts_as_imported(module):
    assert importlib.import_module(module(REGISTERS)).calls == [False]


def test_an_import_with_pending_callbacks_calls_later_ones_at_its_end_too(module):
    name = module(REGISTERS)
    calls = []
    after_import(name, lambda found: calls.append(found.complete))
    assert importlib.import_module(name).calls == [True]
    assert calls == [True]


def test_a_module_sees_its_own_loader_only(module):
    name = module("seen = [__loader__, __spec__.loader]")
    after_import(name, lambda _: None)
    found = importlib.import_module(name)
    assert {type(loader) for loader in (*found.seen, found.__loader__, found.__spec__.loader)} == {
        importlib.machinery.SourceFileLoader
    }


def test_a_program_with_a_pending_callback_runs_by_its_name(module, capsys):
    name = module("print(__name__)")
    after_import(name, lambda _: None)
    runpy.run_module(name, run_name="__main__")
    assert capsys.readouterr().out == "__main__\n"


def test_a_namespace_package_executes_nothing_and_calls_nothing(module):
    module("", "vendor_namespace.part")
    calls = []
    after_import("vendor_namespace", calls.append)
    assert importlib.import_module("vendor_namespace").__file__ is None
    assert calls == []


def test_a_module_that_is_executed_without_an_import_calls_nothing(module):
    name = module()
    calls = []
    after_import(name, calls.append)
    spec = importlib.util.find_spec(name)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert calls == []
    importlib.import_module(name)
    assert calls == [sys.modules[name]]


def test_an_import_that_fails_runs_no_callback_and_the_next_one_does(module):
    name = module("raise ValueError('no')")
    calls = []
    after_import(name, calls.append)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            importlib.import_module(name)
    assert calls == []
    module("value = 1")
    assert importlib.import_module(name).value == 1
    assert calls == [sys.modules[name]]


def test_a_module_that_does_not_exist_runs_no_callback_and_fails_as_ever():
    calls = []
    after_import("vendor_gone", calls.append)
    with pytest.raises(ModuleNotFoundError, match="No module named 'vendor_gone'"):
        importlib.import_module("vendor_gone")
    assert calls == []


def test_looking_for_a_module_is_no_import(module):
    name = module()
    calls = []
    after_import(name, calls.append)
    assert importlib.util.find_spec(name) is not None
    assert calls == []
    importlib.import_module(name)
    assert calls == [sys.modules[name]]


def test_a_module_that_is_forbidden_counts_as_absent(monkeypatch):
    calls = []
    monkeypatch.setitem(sys.modules, "vendor_forbidden", None)
    after_import("vendor_forbidden", calls.append)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("vendor_forbidden")
    assert calls == []


def test_a_module_without_a_specification_counts_as_imported(monkeypatch):
    calls = []
    monkeypatch.setitem(sys.modules, "vendor_made", types.ModuleType("vendor_made"))
    after_import("vendor_made", calls.append)
    assert calls == [sys.modules["vendor_made"]]


def test_a_module_that_replaces_itself_is_given_as_it_is_imported(module):
    name = module("import sys\nsys.modules[__name__] = sys")
    calls = []
    after_import(name, calls.append)
    assert importlib.import_module(name) is sys
    assert calls == [sys]


def test_modules_that_share_a_loader_are_distinguished(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "vendor.zip", "w") as archive:
        for name in ("vendor_one", "vendor_two"):
            archive.writestr(f"{name}.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "vendor.zip"))
    calls = []
    after_import("vendor_two", calls.append)
    try:
        importlib.import_module("vendor_one")
        assert calls == []
        importlib.import_module("vendor_two")
        assert calls == [sys.modules["vendor_two"]]
    finally:
        for name in ("vendor_one", "vendor_two"):
            sys.modules.pop(name, None)


def test_a_finder_that_asks_all_others_does_no_harm(module, monkeypatch):
    class Asking:
        busy = False

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            if cls.busy or not name.startswith("vendor_"):
                return None
            cls.busy = True
            try:
                return importlib.util.find_spec(name)
            finally:
                cls.busy = False

    name = module()
    calls = []
    after_import(name, calls.append)
    for place in (0, len(sys.meta_path)):
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path[:place], Asking, *sys.meta_path[place:]])
    importlib.import_module(name)
    assert calls == [sys.modules[name]]


def refuse(_):
    raise ValueError("no good.\nsecond line")


def test_a_callback_that_fails_spoils_neither_the_import_nor_the_others(module):
    name = module()
    calls = []
    after_import(name, refuse)
    after_import(name, calls.append)
    with pytest.warns(RuntimeWarning) as told:
        importlib.import_module(name)
    assert calls == [sys.modules[name]]
    (text,) = (str(item.message) for item in told)
    assert f"{__name__}.refuse, " in text
    assert repr(name) in text
    assert "ValueError: no good" in text
    assert "pip uninstall" in text
    assert "second" not in text


def test_the_warning_names_the_line_of_the_import_and_the_package(module):
    owner = module("def refuse(_): raise OSError", "openreg_of_a_test")
    name = module()
    after_import(name, importlib.import_module(owner).refuse)
    with pytest.warns(RuntimeWarning, match="openreg-of-a-test") as told:
        import vendor_module  # noqa: F401
    assert told[0].filename == __file__


def test_warnings_that_are_errors_end_the_import_after_all_were_called_and_the_next_one_calls_them_again(module):
    name = module()
    calls = []
    after_import(name, refuse)
    after_import(name, calls.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="no good"):
            importlib.import_module(name)
    assert len(calls) == 1
    assert name not in sys.modules
    with pytest.warns(RuntimeWarning, match="no good"):
        importlib.import_module(name)
    assert calls[1:] == [sys.modules[name]]


def test_control_c_in_a_callback_ends_the_import_and_the_next_one_calls_all(module):
    calls = []

    def interrupt(found):
        calls.append("interrupt")
        if calls == ["interrupt"]:
            raise KeyboardInterrupt

    name = module()
    after_import(name, interrupt)
    after_import(name, lambda _: calls.append("other"))
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module(name)
    assert name not in sys.modules
    importlib.import_module(name)
    assert calls == ["interrupt", "interrupt", "other"]


@pytest.mark.parametrize("name", ["", ".part", "a.", "a b", "a:b", None, 3, b"json"])
def test_what_is_no_name_of_a_module_is_refused(name):
    with pytest.raises(ValueError, match=r'after_import: .*"torch\._dynamo"'):
        after_import(name, print)


@pytest.mark.parametrize("callback", [None, "print", 3])
def test_what_cannot_be_called_is_refused(callback):
    with pytest.raises(TypeError, match=r"after_import: .*; pass a function"):
        after_import("json", callback)
    with pytest.raises(TypeError, match=r"after_import: .*; pass a function"):
        after_import("vendor_never", callback)


def test_other_threads_see_the_module_after_the_callbacks(module):
    name = module()
    entered, seen = threading.Event(), []

    def call(found):
        entered.set()
        time.sleep(0.2)  # the other thread has every opportunity to go on too early
        found.ready = True

    def run():
        entered.wait()
        seen.append(importlib.import_module(name).ready)

    other = threading.Thread(target=run)
    after_import(name, call)
    other.start()
    importlib.import_module(name)
    other.join()
    assert seen == [True]


def test_threads_that_register_while_others_import_lose_no_call_and_double_none(module):
    """The first registration precedes the imports, because only an import with a pending callback is observed."""
    threads, rounds = 4, 60
    calls = []
    for turn in range(rounds):
        name = module("import time; time.sleep(0); complete = True", f"vendor_race.m{turn}")
        start = threading.Barrier(2 * threads)
        after_import(name, lambda _, turn=turn: calls.append(turn))

        def register(start=start, name=name, turn=turn):
            start.wait()
            after_import(name, lambda found: calls.append(turn if found.complete else None))

        def load(start=start, name=name):
            start.wait()
            importlib.import_module(name)

        running = [threading.Thread(target=work) for work in (register, load) * threads]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    assert sorted(calls) == sorted(list(range(rounds)) * (threads + 1))


def test_it_is_public():
    assert "after_import" in openreg_runtime.__all__
