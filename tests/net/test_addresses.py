"""Which addresses count as public."""

from __future__ import annotations

import pytest

from memshelf.net.addresses import is_public

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "172.32.0.1"]
NOT_PUBLIC = {
    "loopback": "127.0.0.1",
    "all of loopback": "127.255.3.4",
    "unspecified": "0.0.0.0",
    "this network": "0.1.2.3",
    "private 10": "10.1.2.3",
    "private 172": "172.16.0.1",
    "private 192": "192.168.1.1",
    "link-local": "169.254.1.1",
    "metadata": "169.254.169.254",
    "metadata behind CGNAT": "100.100.100.200",
    "metadata in a protocol block": "192.0.0.192",
    "a cloud's platform channel": "168.63.129.16",
    "CGNAT": "100.64.0.1",
    "benchmarks": "198.18.0.1",
    "documentation": "203.0.113.9",
    "6to4 relay": "192.88.99.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "loopback 6": "::1",
    "unspecified 6": "::",
    "link-local 6": "fe80::1",
    "link-local 6 with a scope": "fe80::1%eth0",
    "unique local 6": "fd00:ec2::254",
    "site-local 6": "fec0::1",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped public": "::ffff:8.8.8.8",
    "compatible": "::7f00:1",
    "translated": "::ffff:0:8.8.8.8",
    "NAT64": "64:ff9b::a9fe:a9fe",
    "NAT64 of a public address": "64:ff9b::808:808",
    "local NAT64": "64:ff9b:1::1",
    "6to4": "2002:7f00:1::1",
    "Teredo": "2001:0:4136:e378::1",
    "documentation 6": "2001:db8::1",
    "new documentation 6": "3fff::1",
    "discard": "100::1",
    "segment routing": "5f00::1",
    "multicast 6": "ff02::1",
    "public with a scope": "2606:4700:4700::1111%eth0",
    "a name": "localhost",
    "nothing": "",
    "an old notation": "0177.0.0.1",
    "a short notation": "127.1",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_routed_address_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC.values(), ids=NOT_PUBLIC)
def test_every_other_address_is_not(address):
    assert not is_public(address)
