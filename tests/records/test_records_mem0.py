"""Both mem0 stores against the contract, on the fake server; and that server against what is known of the real ones."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memshelf.records.backends.mem0 import MEM0_OSS, MEM0_PLATFORM
from memshelf.testing import RecordStoreContract
from memshelf.testing.mem0 import FakeMem0


class Contract(RecordStoreContract):
    """One server for each folder."""

    namespaces = tuple(name for name in RecordStoreContract.namespaces if " " not in name)
    definition = MEM0_OSS
    credential = None

    @pytest.fixture(autouse=True)
    def _servers(self):
        self.servers = {}

    def server(self) -> FakeMem0:
        raise NotImplementedError

    @asynccontextmanager
    async def open(self, place: Path, namespace: str = "default"):
        fake = self.servers.setdefault(place, self.server())
        async with (
            fake.client() as http,
            self.definition.open(
                {"base_url": "http://mem0.test"}, self.credential, namespace=namespace, http=http
            ) as store,
        ):
            yield store


class TestOpenSource(Contract):
    def server(self):
        return FakeMem0("mem0_oss")


class TestPlatform(Contract):
    definition = MEM0_PLATFORM
    credential = {"api_key": "m0-key"}  # noqa: RUF012  # never changed

    def server(self):
        return FakeMem0("mem0_platform", api_key="m0-key")


class TestPlatformThatAddsLater(TestPlatform):
    def server(self):
        return FakeMem0("mem0_platform", api_key="m0-key", adds_after=1)


class TestServersThatNameNobody(Contract):
    def server(self):
        return FakeMem0("mem0_oss", nameless=True)
