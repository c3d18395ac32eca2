"""Hosts that asked for https by Strict-Transport-Security (RFC 6797), for the rest of their crawl.

As browsers do, the crawl then requests what links give as `http://` by https, and keeps a redirect of its own. Only a
response over https with a valid certificate counts, and only of a name without a port: an address, a host of a private
network or one at a port is never redirected. Nothing of it is kept for another crawl.
"""

from __future__ import annotations

import re

from agent.crawl.frontier import HSTS, Frontier
from agent.crawl.scope import domain_in, is_private_domain

_MAX_AGE = re.compile(r'max-age\s*=\s*"?(\d+)"?', re.IGNORECASE | re.ASCII)
_SUBDOMAINS = "includesubdomains"

# == policy, pure =====================================================================================================


def policy_of(field: str) -> bool | None:
    """Return whether the policy of a field is for subdomains as well; None if it ends one, or is none."""
    parts = [part.strip() for part in field.split(";")]
    ages = [int(match[1][:12]) for part in parts if (match := _MAX_AGE.fullmatch(part))]
    return any(part.lower() == _SUBDOMAINS for part in parts) if len(ages) == 1 and ages[0] else None


def may_have_policy(url: str) -> bool:
    """Return whether a host may ask for https by its response to `url`."""
    domain = domain_in(url)
    return url.startswith("https://") and ":" not in domain and is_private_domain(domain) is None


# == policies of a crawl ==============================================================================================


class SecureOnly:
    """The policies that a crawl met, in its frontier."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._known: dict[str, bool | None] = {}

    def learn(self, url: str, field: str) -> None:
        """Note the policy of the response to `url`."""
        domain, policy = domain_in(url), policy_of(field)
        if may_have_policy(url) and self._policy(domain) != policy:
            self._known[domain] = policy
            self._frontier.set(HSTS.of(domain), policy)

    def target(self, url: str) -> str:
        """Return the URL by https that is requested for `url`; empty if that is requested as it is."""
        domain = domain_in(url)
        if not url.startswith("http://") or not may_have_policy(f"https://{domain}/"):
            return ""
        above = (domain.split(".", number)[-1] for number in range(1, domain.count(".") + 1))
        if self._policy(domain) is not None or any(self._policy(parent) for parent in above):
            return f"https://{url.removeprefix('http://')}"
        return ""

    def _policy(self, domain: str) -> bool | None:
        if domain not in self._known:
            self._known[domain] = self._frontier.get(HSTS.of(domain))
        return self._known[domain]
