"""The sort key of a URL by host, from the top-level domain down (SURT, as in CDX files). Pure.

`http://www.example.org:8080/a?B=1` is `org,example,www:8080)/a?B=1`. The scheme is left out, since both schemes share
an ARC; `www.`, case, port, the order of parameters and a final slash stay, since they distinguish pages.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"\[.*\]|[0-9]+(?:\.[0-9]+){3}")


def surt(url: str) -> str:
    """Return the key of a canonical URL. An address is not reversed, since it has no top-level domain."""
    host_port, slash, rest = url.partition("://")[2].partition("/")
    host, colon, port = host_port.rpartition(":")
    if not colon or not port.isdecimal():  # the last colon of an IPv6 address is inside the brackets
        host, colon, port = host_port, "", ""
    turned = host if _ADDRESS.fullmatch(host) else ",".join(reversed(host.split(".")))
    return f"{turned}{colon}{port}){slash}{rest}"
