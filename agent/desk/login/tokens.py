"""Tokens of forms and of previews, signed with the key of this start. Pure.

A form's token says in which session and for which action the form was made, and which state of its object it showed:
sent late it does nothing, whatever changed meanwhile. Each has a mark of its own, by which a second copy is told apart.
A preview's token says which record a session may look at; it is valid for an hour.
"""

from __future__ import annotations

import hashlib
import secrets

from itsdangerous import BadData, URLSafeSerializer, URLSafeTimedSerializer

from agent.desk import limits
from agent.desk.forms import FormToken

_DIGEST = {"digest_method": hashlib.sha256}


class Tokens:
    """Makes and reads tokens."""

    def __init__(self, key: bytes) -> None:
        self._forms = URLSafeSerializer(key, salt="webarcfs form", signer_kwargs=_DIGEST)
        self._previews = URLSafeTimedSerializer(key, salt="webarcfs preview", signer_kwargs=_DIGEST)

    def form(self, session: str, action: str, state: str = "") -> str:
        """Return the token of a form."""
        return str(self._forms.dumps([session, action, secrets.token_urlsafe(9), state]))

    def read(self, text: str, session: str, action: str) -> FormToken:
        """Return what a token says; of a foreign or broken one, what it says of the state, if it does."""
        try:
            said, is_ours = self._forms.loads(text), True
        except BadData:
            said, is_ours = self._unsafely(text), False
        if not (isinstance(said, list) and len(said) == 4 and all(isinstance(each, str) for each in said)):
            return FormToken("", "", False)
        return FormToken(said[2], said[3], is_ours and said[0] == session and said[1] == action)

    def _unsafely(self, text: str) -> object:
        """Return what a token says that another start signed: which state a form showed is no secret."""
        try:
            return self._forms.loads_unsafe(text)[1]
        except (BadData, ValueError):
            return None

    def preview(self, session: str, record: str) -> str:
        """Return the token of a preview."""
        return str(self._previews.dumps([session, record]))

    def of_preview(self, text: str) -> tuple[str, str] | None:
        """Return session and record of a preview; None for a token that is not valid, or not any more."""
        try:
            said = self._previews.loads(text, max_age=limits.PREVIEW_SECONDS)
        except BadData:
            return None
        return (str(said[0]), str(said[1])) if isinstance(said, list) and len(said) == 2 else None
