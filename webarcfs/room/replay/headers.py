"""The headers of archived answers: what is passed on of the archived head, and the rules for browsers.

An archived page must neither run code nor reach another host: the policy of the built-in engine says so to the browser,
whatever the page contains (Content Security Policy level 3; HTML, "sandboxing"). Fields that would act on the browser
or on the connection are not passed on; the rest is reported as `X-Archive-Orig-*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from starlette.requests import Request

from webarcfs.content.mimetype import declared_type
from webarcfs.content.text import label_in_header, label_of
from webarcfs.room.replay.replay_url import Modifier
from webarcfs.warc.http_response import Head

# == headers, pure ====================================================================================================


Headers = list[tuple[str, str]]

#: What the iframe of the built-in engine allows (HTML, attribute sandbox), in the frame and in the page's own policy.
SANDBOX = "allow-forms allow-downloads allow-top-navigation-by-user-activation"
#: What a document may do whose links are not rewritten: lead nowhere.
_SANDBOX_WITHOUT_LINKS = "allow-downloads"
#: What the iframe of pywb's engine allows; its pages have an origin of their own.
SANDBOX_WITH_SCRIPTS = "allow-scripts allow-same-origin allow-forms allow-downloads"
#: For every archived answer: an archived page has no origin, and may show what it embeds all the same.
COMMON: Headers = [
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Cross-Origin-Opener-Policy", "unsafe-none"),
]
#: Fields of archived heads that are not passed on, not even under another name.
_SILENT = frozenset(
    {
        "set-cookie", "set-cookie2", "strict-transport-security", "content-security-policy",
        "content-security-policy-report-only", "clear-site-data", "refresh", "link", "alt-svc",
        "service-worker-allowed", "nel", "report-to", "reporting-endpoints", "content-encoding", "transfer-encoding",
        "content-length", "connection", "keep-alive", "te", "trailer", "upgrade", "proxy-authenticate",
        "www-authenticate", "public-key-pins", "expect-ct", "speculation-rules", "origin-trial", "sourcemap",
        "x-sourcemap", "supports-loading-mode",
    }
)  # fmt: skip
#: By these a script says that it takes the answer, and not a window: pywb adds nothing to it then.
BY_SCRIPT = frozenset({b"x-requested-with", b"x-pywb-requested-with"})
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_UNCLEAN = re.compile(r"[^\x20-\x7e]")
#: Most bytes of an archived head that are reported.
_MOST = 4_096
_CHARSET = re.compile(r"[A-Za-z0-9._:+-]{1,40}")
#: Types that a modifier asks for: a browser that asked for a script or a sheet takes no other.
_ASKED_AS = {Modifier.SCRIPT: "text/javascript", Modifier.SHEET: "text/css"}
#: The policy of archived pages, scripts and workers where scripts run (Content Security Policy level 3). It is a
#: sandbox also where a page is opened on its own, or has another type than the frame expects.
POLICY_WITH_SCRIPTS = (
    f"sandbox {SANDBOX_WITH_SCRIPTS}; default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; "
    "form-action 'self'; base-uri 'self'; webrtc 'block'"
)
#: WebRTC, preconnect and navigation are outside that policy in Chromium (WICG, Connection Allowlists).
_CONNECTIONS = '(response-origin "{room}/*");redirects=allow;webrtc=block'


def policy(room: str, *, is_framed: bool, has_links: bool) -> str:
    """Return the Content-Security-Policy of an archived page. `room` is the origin of the room, `'self'` for the same.

    `is_framed`: the page is shown in the room's frame itself, and not in a frame of another archived page. `has_links`:
    it has links, which were rewritten.
    """
    sandbox = SANDBOX if has_links else _SANDBOX_WITHOUT_LINKS
    rules = (
        f"sandbox {sandbox}; default-src 'self' data: blob: 'unsafe-inline'; script-src 'none'; connect-src 'none'; "
        f"object-src 'self' data:; worker-src 'none'; manifest-src 'none'; base-uri 'self'; form-action {room}"
    )
    return f"{rules}; frame-ancestors {room}" if is_framed else rules


def policy_of_bytes() -> str:
    """Return the policy of a body as it was sent: a document of its own, without any way out."""
    return "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def connections(room: str) -> str:
    """Return what a page whose scripts run may connect to, beside its own origin: the room."""
    return _CONNECTIONS.format(room=room)


#: For an archived body on the room's own listener: it is a file, and in no browser a document or a part of one.
AS_FILE: Headers = [("Content-Security-Policy", policy_of_bytes()), ("Content-Disposition", "attachment")]


def echo_head(head: Head | None) -> Iterator[tuple[str, str]]:
    """Yield the archived head as `X-Archive-Orig-*`: clean names and values, 4 kB at most."""
    left = _MOST
    for name, value in () if head is None else head.fields.items():
        if name in _SILENT or not _NAME.fullmatch(name):
            continue
        clean = _UNCLEAN.sub("?", value)
        left -= len(name) + len(clean)
        if left < 0:
            return
        yield f"X-Archive-Orig-{name}", clean


def content_type(mime_type: str, head: Head | None, modifier: Modifier, charset: str = "") -> str:
    """Return the Content-Type of an archived body: the ARC's type, with the charset as it was sent.

    `charset` is that of a body that was rewritten, by Python's name. A script or a sheet that was asked for as one
    is one.
    """
    kind = _ASKED_AS.get(modifier) or declared_type(mime_type) or "application/octet-stream"
    sent = label_in_header(head.content_type) if head is not None else ""
    label = label_of(charset) if charset else sent if _CHARSET.fullmatch(sent) else ""
    return f"{kind}; charset={label}" if label else kind


def is_for_window(request: Request) -> bool:
    """Return whether a window or a frame asks, and not a script or a download (Fetch Metadata; else by Accept)."""
    headers = request.headers
    mode = headers.get("sec-fetch-mode")
    if mode is not None:
        return mode == "navigate" and headers.get("sec-fetch-dest") in ("document", "iframe", "frame")
    by_script = any(name.lower() in BY_SCRIPT for name, _ in headers.raw)
    return headers.get("accept", "").startswith("text/html,") and not by_script
