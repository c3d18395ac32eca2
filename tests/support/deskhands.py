"""A person at the desk in a browser, whose clicks are counted after the login."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Locator, Page

from tests.support.desks import PASSWORD


@dataclass
class Hand:
    """A person at the browser, whose clicks are counted after the login."""

    tab: Page
    origin: str
    clicks: int = field(default=0)

    def login(self, name: str) -> None:
        """Log in with the form."""
        self.tab.goto(f"{self.origin}/")
        self.tab.fill("#name", name)
        self.tab.fill("#password", PASSWORD)
        self.tab.click("main button")
        self.tab.wait_for_selector(".who", state="attached")  # on a phone it is folded

    def click(self, place: str | Locator) -> None:
        """Click on the first of what is meant, and wait for the page that it leads to."""
        found = self.tab.locator(place).first if isinstance(place, str) else place
        found.click()
        self.tab.wait_for_load_state()
        self.clicks += 1

    def at_home(self) -> None:
        """Go to the first page, with no click done."""
        self.tab.goto(f"{self.origin}/")
        self.clicks = 0

    def row(self, record_id: str) -> Locator:
        """The row of a snapshot in a list."""
        return self.tab.locator(f"tr:has(a[href='/snapshot/{record_id}'])")

    @property
    def words(self) -> str:
        """What is read of the page."""
        return self.tab.locator("main").inner_text()


@contextmanager
def at_desk(browser: Browser, origin: str, name: str) -> Iterator[Hand]:
    """A person who has logged in at a desk."""
    context = browser.new_context(viewport={"width": 1300, "height": 900}, locale="en")
    context.set_default_timeout(15_000)
    made = Hand(context.new_page(), origin)
    made.login(name)
    yield made
    context.close()
