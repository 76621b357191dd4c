"""The client for public HTTPS endpoints: where it connects, and what it does with what it is told on the way."""

from __future__ import annotations

import asyncio
import ssl

import httpcore2
import httpx2
import pytest

from memshelf.net.answer import AnswerError, read_answer
from memshelf.net.egress import EgressRefusedError, Network, PublicTransport, public_client


class Wire(httpcore2.AsyncNetworkBackend):
    """Notes what is connected to, and answers there with bytes, or refuses."""

    def __init__(self, *answers, down=()):
        self.connected, self.down, self.answers = [], down, list(answers)

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.connected.append((host, port))
        if host in self.down:
            raise httpcore2.ConnectError("refused")
        return Stream(self)


class Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, wire):
        self.wire, self.hostname = wire, None

    async def start_tls(self, ssl_context, server_hostname=None, timeout=None):
        assert ssl_context.verify_mode == ssl.CERT_REQUIRED
        assert ssl_context.check_hostname
        self.wire.tls_for = server_hostname
        return self

    async def write(self, buffer, timeout=None):
        pass

    async def read(self, max_bytes, timeout=None):
        return self.wire.answers.pop(0)

    async def aclose(self):
        pass


def resolving(**hosts):
    """Names, each with the lists of addresses that it has one look-up after another."""
    lookups = {host.replace("_", "."): list(answers) for host, answers in hosts.items()}

    async def resolve(host, port):
        if host not in lookups:
            return [host]
        return lookups[host].pop(0)

    return resolve


def client(wire, **hosts):
    transport = PublicTransport(Network(resolving(**hosts), wire))
    return httpx2.AsyncClient(transport=transport, trust_env=False)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi"


async def test_the_checked_address_is_the_one_connected_to():
    wire = Wire(OK)
    async with client(wire, memory_example=[["93.184.216.34"]]) as http:
        answer = await http.get("https://memory.example/")
    assert answer.text == "hi"
    assert wire.connected == [("93.184.216.34", 443)]
    assert wire.tls_for == "memory.example"


async def test_a_name_that_changes_its_address_is_checked_at_every_connection():
    wire = Wire(OK)
    async with client(wire, memory_example=[["93.184.216.34"], ["127.0.0.1"]]) as http:
        await http.get("https://memory.example/")
        with pytest.raises(EgressRefusedError, match=r"memory\.example is not a public address"):
            await http.get("https://memory.example/")
    assert wire.connected == [("93.184.216.34", 443)]


async def test_of_several_addresses_only_the_public_ones_are_tried():
    wire = Wire(OK, down=("93.184.216.34",))
    addresses = ["10.0.0.1", "93.184.216.34", "64:ff9b::1", "2606:4700:4700::1111"]
    async with client(wire, memory_example=[addresses]) as http:
        await http.get("https://memory.example:8443/")
    assert wire.connected == [("93.184.216.34", 8443), ("2606:4700:4700::1111", 8443)]


async def test_when_no_address_answers_it_is_a_failure_to_connect_and_no_refusal():
    wire = Wire(down=("93.184.216.34", "1.1.1.1"))
    async with client(wire, memory_example=[["93.184.216.34", "1.1.1.1"]]) as http:
        with pytest.raises(httpx2.ConnectError) as failure:
            await http.get("https://memory.example/")
    assert not isinstance(failure.value, EgressRefusedError)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]",
     "169.254.169.254", "[64:ff9b::a9fe:a9fe]", "100.100.100.200"],
)  # fmt: skip
async def test_this_machine_and_its_networks_are_refused_however_they_are_written(host):
    wire = Wire()
    async with httpx2.AsyncClient(transport=PublicTransport(Network(backend=wire)), trust_env=False) as http:
        with pytest.raises((EgressRefusedError, httpx2.ConnectError)):
            await http.get(f"https://{host}/")
    assert wire.connected == []


async def test_plain_http_is_refused():
    async with public_client(timeout=5) as http:
        with pytest.raises(EgressRefusedError, match="HTTPS"):
            await http.get("http://93.184.216.34/")


async def test_a_loopback_server_hears_nothing():
    heard = asyncio.Event()

    async def listen(reader, writer):
        heard.set()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server, public_client(timeout=5) as http:
        port = server.sockets[0].getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(EgressRefusedError):
                await http.get(f"https://{host}:{port}/")
    assert not heard.is_set()


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    async with public_client(timeout=5) as http:
        with pytest.raises(EgressRefusedError, match=r"10\.0\.0\.1"):
            await http.get("https://10.0.0.1/")


async def test_a_redirect_is_not_followed():
    wire = Wire(b"HTTP/1.1 307 Moved\r\nlocation: https://127.0.0.1/\r\ncontent-length: 0\r\n\r\n")
    async with client(wire, memory_example=[["93.184.216.34"]]) as http:
        answer = await http.get("https://memory.example/")
    assert answer.status_code == 307
    assert len(wire.connected) == 1


async def test_a_name_without_an_address_is_a_failure_to_connect():
    async def nowhere(host, port):
        raise OSError("no such name")

    transport = PublicTransport(Network(nowhere, Wire()))
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(httpx2.ConnectError, match=r"memory\.example has no address"):
            await http.get("https://memory.example/")


async def test_a_name_that_is_never_resolved_times_out():
    async def never(host, port):
        await asyncio.Event().wait()

    transport = PublicTransport(Network(never, Wire()))
    async with httpx2.AsyncClient(transport=transport, timeout=0.05) as http:
        with pytest.raises(httpx2.ConnectTimeout):
            await http.get("https://memory.example/")


async def test_an_answer_that_breaks_off_is_an_error_of_httpx2():
    wire = Wire(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi", b"")
    async with client(wire, memory_example=[["93.184.216.34"]]) as http:
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.get("https://memory.example/")


async def test_an_endless_answer_is_read_up_to_the_limit():
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1000
            yield b"x" * 1000

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=endless()))
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(AnswerError, match="10000 bytes"):
            await read_answer(http, http.build_request("GET", "https://memory.example/"), seconds=9, most_bytes=10_000)
    assert sent == 11_000


async def test_a_compressed_answer_is_not_unpacked():
    async def packed():
        yield b"\x1f\x8b"

    transport = httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers={"content-encoding": "gzip"}, content=packed())
    )
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(AnswerError, match="compressed"):
            await read_answer(http, http.build_request("GET", "https://memory.example/"), seconds=9, most_bytes=10_000)


async def test_an_answer_that_drips_is_given_up_in_time():
    async def dripping():
        while True:
            yield b"x"
            await asyncio.sleep(0.01)

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=dripping()))
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(AnswerError, match=r"within 0\.1 seconds"):
            await read_answer(
                http, http.build_request("GET", "https://memory.example/"), seconds=0.1, most_bytes=10_000
            )
