"""Which addresses are public: reached through the internet, and nobody's own network, host or cloud metadata."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address

__all__ = ["is_public"]

_NOT_PUBLIC_V4 = (
    IPv4Network("100.64.0.0/10"),  # carrier-grade NAT; has the metadata address of some clouds
    IPv4Network("168.63.129.16/32"),  # a cloud's platform channel, on what looks like a public address
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
)
_UNICAST_V6 = IPv6Network("2000::/3")
"""All that is routed. Left out are loopback, link-local and unique local addresses, and those that wrap an IPv4 address
(mapped, compatible, translated, NAT64), which may be any."""
_NOT_PUBLIC_V6 = (
    IPv6Network("2001::/23"),  # protocols, Teredo among them: it wraps an IPv4 address
    IPv6Network("2001:db8::/32"),
    IPv6Network("2002::/16"),  # 6to4: wraps an IPv4 address
    IPv6Network("3fff::/20"),
)


def is_public(address: str) -> bool:
    """Whether a numeric address is a public unicast one. What is no address, or has a scope, is not."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if parsed.is_multicast or parsed.is_reserved or not parsed.is_global:
        return False
    if parsed.version == 4:
        return not any(parsed in network for network in _NOT_PUBLIC_V4)
    return parsed in _UNICAST_V6 and "%" not in address and not any(parsed in network for network in _NOT_PUBLIC_V6)
