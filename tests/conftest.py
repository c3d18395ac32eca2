"""For all tests: what hypothesis makes up may take as long as it takes, since the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("webarcfs", deadline=None)
settings.load_profile("webarcfs")
