"""The HTTP API of named stores: the door that other machines, languages and SDKs come through.

It parses, authorises, calls what `memshelf.stores` and `memshelf.mounts` offer, and answers; it has no rules of its
own. It needs the extra `service`.
"""
