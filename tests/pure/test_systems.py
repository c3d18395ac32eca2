"""The operating system of a server, where its Server field names one: field 9 of a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.catalogue.recording import system_of

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("server", "system"),
    [
        ("Apache/2.4.57 (Debian)", "Debian"), ("nginx/1.18.0 (Ubuntu)", "Ubuntu"), ("Apache/1.3.27 (Unix)", "Unix"),
        ("Apache/2.0.52 (Red Hat)", "Red Hat Linux"), ("Apache/2.4.6 (CentOS) PHP/5.4.16", "CentOS"),
        ("Apache/2.2.8 (Win32)", "Windows"), ("Microsoft-IIS/10.0", "Windows"), ("Apache (Linux/SuSE)", "SUSE Linux"),
        ("lighttpd/1.4 FreeBSD", "FreeBSD"), ("Apache/2.0 (Darwin)", "macOS"),
        ("BaseHTTP/0.6 Python/3.11.7", ""), ("nginx", ""), ("cloudflare", ""), ("AmazonS3", ""), ("", ""),
        ("Unixodus/1.0", ""), ("windowsill", ""),
    ],
)  # fmt: skip
def test_a_header_that_names_no_system_says_nothing(server: str, system: str) -> None:
    assert system_of(server) == system


@given(st.text(max_size=300))
def test_any_header_is_read(server: str) -> None:
    assert system_of(server) == "" or len(system_of(server)) < 20
