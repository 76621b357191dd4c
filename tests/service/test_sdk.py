"""The official SDK, unmodified, in two versions: the one that is installed and an older one, each in a process of its
own against a real service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anthropic
import pytest
from serving import Service

SDK = Path(__file__).parent / "sdk"
OLDER = "0.121.0"


@pytest.fixture(scope="session")
def older_sdk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with the older version and what it needs, from the package registry."""
    target = tmp_path_factory.mktemp("older-sdk")
    wanted = f"anthropic=={OLDER}"
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), wanted],
        capture_output=True,
        text=True,
        timeout=110,
    )
    if pip.returncode != 0:
        pytest.fail(f"No environment holds two versions of one package, and no registry gave {wanted}: {pip.stderr}")
    return str(target)


def run_suite(service: Service, version: str, dialects: str, path: str = "") -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            str(SDK / "suite_stores.py"),
        ],
        capture_output=True,
        text=True,
        cwd=SDK,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "MEMSHELF_TEST_URL": service.url,
            "MEMSHELF_TEST_KEY": service.key,
            "MEMSHELF_TEST_SDK": version,
            "MEMSHELF_TEST_DIALECTS": dialects,
        },
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_the_installed_sdk(service: Service, engine: str) -> None:
    # What the older protocol changes, no database sees.
    run_suite(service, anthropic.__version__, "anthropic zhipu zhipu-old" if engine == "sqlite" else "anthropic zhipu")


def test_an_older_sdk(service: Service, engine: str, older_sdk: str) -> None:
    run_suite(service, OLDER, "anthropic zhipu" if engine == "sqlite" else "anthropic", older_sdk)
