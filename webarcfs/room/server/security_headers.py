"""What every answer of the room forbids browsers: scripts and frames of others, referrers, look-ups of names, devices.

A header that an answer has of its own stays as it is: archived pages, and what they embed, have another policy, also
where they come from the room's own listener.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Features of browsers that no page of an archive needs (Permissions Policy).
_FEATURES = (
    "accelerometer", "ambient-light-sensor", "attribution-reporting", "autoplay", "bluetooth", "browsing-topics",
    "camera", "display-capture", "encrypted-media", "fullscreen", "gamepad", "geolocation", "gyroscope", "hid",
    "identity-credentials-get", "idle-detection", "local-fonts", "magnetometer", "microphone", "midi",
    "otp-credentials",     "payment",
    "picture-in-picture", "publickey-credentials-create", "publickey-credentials-get", "screen-wake-lock",
    "serial", "storage-access", "usb", "web-share", "window-management", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS_POLICY = ", ".join(f"{each}=()" for each in _FEATURES)


def room_headers(replay_origin: str) -> dict[str, str]:
    """Return the headers of the room's own pages. An empty `replay_origin` is the room's own."""
    policy = {
        "default-src": "'none'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "script-src": "'self'",
        "frame-src": replay_origin or "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        **shared_headers(),
    }


def shared_headers() -> dict[str, str]:
    """Return the headers of both listeners: nothing leaves the archive."""
    return {
        "Permissions-Policy": PERMISSIONS_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-DNS-Prefetch-Control": "off",
    }


class SecurityHeaders:
    """An ASGI app that adds headers to the answers of another, where they have none of that name."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                names = {name.lower() for name, _ in own}
                message = {**message, "headers": [*own, *(each for each in self._headers if each[0] not in names)]}
            await send(message)

        await self._app(scope, receive, add)
