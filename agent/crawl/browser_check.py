"""Whether a browser can show pages here: whether one is installed, whether it may be isolated, and what helps if not.

It makes the namespaces that a crawl makes for its browser, and runs `true` in them, as the user who asks. No browser is
started. Where that fails, the settings of the kernel and of the process say why, and so what to allow.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.crawl import scope
from agent.crawl.vocabulary import Reason
from webarcfs.archive.config.settings import BrowserSettings, Fetcher, Settings
from webarcfs.archive.model.errors import BrowserUnable

_CAP_SYS_ADMIN: Final = 21
#: Kinds of namespaces of a browser, as the kernel's limits name them.
_KINDS: Final = ("user", "mnt", "pid", "net", "ipc", "uts")
#: A mount point below /proc that hides nothing.
_HIDES_NOTHING: Final = "/proc/sys/fs/binfmt_misc"


@dataclass(frozen=True, slots=True)
class BrowserCheck:
    """Whether a browser can show pages. `word` is the crawl log's for why not, empty where it can.

    `why` is what the system said, `advice` what helps, a line each; both are for people.
    """

    program: str
    word: str = ""
    why: str = ""
    advice: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """Return what there is to say, a line each."""
        if not self.word:
            return (f"a browser can show pages here: {self.program}, without a network",)
        return (f"no browser can show pages here ({self.word}): {self.why}", *(f"  {line}" for line in self.advice))


@dataclass(frozen=True, slots=True)
class NamespaceRules:
    """What the kernel and this process have to say about namespaces.

    `limits` has, by kind, how many a user may have. `may_clone`: users may make namespaces at all; None: the kernel has
    no such setting. `is_filtered`: system calls of this process are filtered. `is_proc_masked`: parts of /proc are
    hidden by mounts, so that the kernel lets no user mount another one.
    """

    is_root: bool = False
    may_administer: bool = False
    is_filtered: bool = False
    is_proc_masked: bool = False
    is_held_by_apparmor: bool = False
    may_clone: bool | None = None
    limits: Mapping[str, int] | None = None

    @classmethod
    def here(cls) -> NamespaceRules:
        """Return the rules that hold for this process."""
        status = dict(line.partition(":")[::2] for line in _text("/proc/self/status").splitlines())
        limits = {kind: _number(f"/proc/sys/user/max_{kind}_namespaces") for kind in _KINDS}
        clone = _number("/proc/sys/kernel/unprivileged_userns_clone")
        points = [line.split()[4] for line in _text("/proc/self/mountinfo").splitlines() if len(line.split()) > 4]
        return cls(
            is_root=os.geteuid() == 0,
            may_administer=bool(int(status.get("CapEff", "0").strip() or "0", 16) >> _CAP_SYS_ADMIN & 1),
            is_filtered=status.get("Seccomp", "").strip() == "2",
            is_proc_masked=any(point.startswith("/proc/") and point != _HIDES_NOTHING for point in points),
            is_held_by_apparmor=_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1,
            may_clone=None if clone is None else clone != 0,
            limits={kind: most for kind, most in limits.items() if most is not None},
        )


def advice_for(rules: NamespaceRules) -> tuple[str, ...]:
    """Return what lets a browser be isolated, a line each; the first ones are the likely ones."""
    lines: list[str] = []
    if rules.is_root and not rules.may_administer:
        lines.append(
            "root may make no namespaces in this container: start it with `--cap-add SYS_ADMIN`, "
            "or run webarc-agent in it as another user"
        )
    if not rules.is_root:
        if rules.may_clone is False:
            lines.append("allow users to make namespaces: `sysctl -w kernel.unprivileged_userns_clone=1`")
        if rules.is_held_by_apparmor:
            lines.append(
                "AppArmor keeps users from namespaces: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, "
                "or a profile with `userns,` for /usr/bin/unshare and the browser"
            )
    lines += [
        f"no namespaces of the kind {kind} are allowed: `sysctl -w user.max_{kind}_namespaces=1000`"
        for kind, most in (rules.limits or {}).items()
        if most == 0
    ]
    if rules.is_filtered:
        lines.append(
            "a filter of system calls holds for this process: a unit of systemd needs RestrictNamespaces and "
            "SystemCallFilter of examples/webarc-browser.conf; a container needs `--security-opt seccomp=unconfined`, "
            "or a profile that has unshare and mount"
        )
    if rules.is_proc_masked:
        lines.append(
            "parts of /proc are hidden: a unit of systemd needs ProtectKernelTunables and ProtectKernelLogs of "
            "examples/webarc-browser.conf; a container needs `--security-opt systempaths=unconfined`"
        )
    if any("sysctl" in line for line in lines):
        lines.append("a setting by sysctl lasts with a line in /etc/sysctl.d/")
    return (*lines, 'or crawl without a browser: `fetcher = "wget"`')


def uses_browser(settings: Settings) -> bool:
    """Return whether a browser may show pages of any publication that is crawled."""
    crawled = (publication for publication in settings.publications if not publication.retired)
    return settings.crawl.fetcher != Fetcher.WGET or any(map(scope.may_show_pages, crawled))


def check_program(machine: BrowserSettings) -> BrowserCheck:
    """Return whether the program of a browser is there, with these settings of the machine. Nothing is started."""
    from agent.crawl import chromium  # noqa: PLC0415 # most commands need none of this

    try:
        return BrowserCheck(chromium.find_program(machine.program))
    except BrowserUnable as error:  # it says which package is missing where no program is named
        advice = ("correct `program`, or remove it: then the installed Chromium is taken",) if machine.program else ()
        return BrowserCheck(machine.program, Reason.BROWSER_MISSING, str(error), advice)


def check_browser(machine: BrowserSettings, archive: Path) -> BrowserCheck:
    """Return whether a browser can show pages here for an archive, with these settings of the machine."""
    from agent.crawl import chromium  # noqa: PLC0415 # most commands need none of this

    check = check_program(machine)
    if check.word:
        return check
    user = chromium.user_of(machine.user)
    try:
        why = chromium.try_isolation(check.program, user, archive)
    except BrowserUnable as error:
        advice = "`apt-get install util-linux`" if user is None or _is_user(user) else _advice_on_user(user)
        return BrowserCheck(check.program, Reason.BROWSER_MISSING, str(error), (advice,))
    if not why:
        return check
    return BrowserCheck(check.program, Reason.BROWSER_NO_NAMESPACE, why, advice_for(NamespaceRules.here()))


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _advice_on_user(name: str) -> str:
    return f"make it by `useradd --system {name}`, or name a user of this machine that owns nothing"


def needed_check(settings: Settings, archive: Path) -> BrowserCheck | None:
    """Return the same where any publication uses a browser; None where none does."""
    return check_browser(settings.browser, archive) if uses_browser(settings) else None


def lines_of(browser: BrowserCheck | None) -> Iterable[str]:
    """Return what there is to say of a browser; nothing where none is needed."""
    return () if browser is None else browser.lines()


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None
