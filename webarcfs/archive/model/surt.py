"""The key of a URL that sorts by host, from the top-level domain down (SURT, as CDX files have it). Pure.

`http://www.example.org:8080/a?B=1` is `org,example,www:8080)/a?B=1`. The scheme is left out, since both schemes share
an ARC; `www.`, case, port, the order of parameters and a slash at the end stay, since they tell pages apart.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"\[.*\]|[0-9]+(?:\.[0-9]+){3}")


def surt(url: str) -> str:
    """The key of a canonical URL. An address stays as it is, since it has no top-level domain."""
    host_port, slash, rest = url.partition("://")[2].partition("/")
    host, colon, port = host_port.rpartition(":")
    if not colon or not port.isdecimal():  # of an IPv6 address the last colon is inside the brackets
        host, colon, port = host_port, "", ""
    turned = host if _ADDRESS.fullmatch(host) else ",".join(reversed(host.split(".")))
    return f"{turned}{colon}{port}){slash}{rest}"
