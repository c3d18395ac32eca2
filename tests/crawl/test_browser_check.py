"""`status` says whether a browser can show pages: whether one is there, whether it may be isolated, and what helps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.crawl import chromium
from agent.crawl.browser_check import NamespaceRules, advice_for
from tests.support import crawls
from tests.support.browsers import needs_chromium
from tests.support.crawls import COMMAND, run_command
from tests.support.site import Site
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = pytest.mark.crawl
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can take rights from itself")


def _use_browser(archive: Archive, more: str = "") -> None:
    archive.settings.write_text(f'[crawl]\nfetcher = "auto"\n{more}')


def _status(archive: Archive, *before: str) -> str:
    done = subprocess.run(
        [*before, *COMMAND, "status", "--archive", str(archive.root)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_status_says_nothing_of_a_browser_that_nobody_needs(archive: Archive) -> None:
    assert json.loads(run_command("status", "--archive", archive.root, "--json").out)["browser"] is None
    assert "browser" not in run_command("status", "--archive", archive.root).out


@needs_chromium()
def test_status_says_that_a_browser_can_show_pages(archive: Archive) -> None:
    _use_browser(archive)
    browser = json.loads(run_command("status", "--archive", archive.root, "--json").out)["browser"]
    assert browser["program"] == shutil.which("chromium") and browser["word"] == "" and browser["advice"] == []
    assert "a browser can show pages here" in run_command("status", "--archive", archive.root).out


def test_status_says_what_is_wrong_with_the_settings_of_the_browser(archive: Archive, tmp_path: Path) -> None:
    _use_browser(archive, f'[browser]\nprogram = "{tmp_path}/none"\n')
    text = run_command("status", "--archive", archive.root).out
    assert "no browser can show pages here (browser-missing)" in text and "correct `program`" in text
    assert "apt-get" not in text, "Chromium may well be installed"
    _use_browser(archive, '[browser]\nuser = "nobody-of-that-name"\n')
    if os.geteuid() == 0:
        text = run_command("status", "--archive", archive.root).out
        assert "there is no user nobody-of-that-name" in text and "useradd --system nobody-of-that-name" in text


def test_status_names_the_package_once_where_no_browser_is_installed(archive: Archive, tmp_path: Path) -> None:
    _use_browser(archive)
    text = _status(archive, shutil.which("env") or "env", f"PATH={tmp_path}")
    assert "no browser can show pages here (browser-missing): no browser is installed" in text
    assert text.count("apt-get install chromium") == 1


def test_commands_do_not_import_what_drives_the_browser() -> None:
    """Each of them would start later for it."""
    names = ("agent.commands.record", "agent.commands.service", "agent.commands.publication")
    code = f"import sys, {', '.join(names)}; print(sorted({{'asyncio', 'agent.crawl.chromium'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@needs_root
@needs_chromium()
def test_status_says_how_to_allow_what_the_system_forbids(archive: Archive) -> None:
    """The rights are taken from the process that asks, as containers and settings of the kernel take them."""
    _use_browser(archive)
    text = _status(archive, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    assert "(browser-no-namespace): unshare:" in text and "--cap-add SYS_ADMIN" in text, text
    limit = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    text = _status(archive, "unshare", "--user", "--map-root-user", "--", "sh", "-c", limit, "sh")
    assert "(browser-no-namespace): unshare:" in text and "sysctl -w user.max_net_namespaces=" in text, text


@needs_chromium()
def test_a_trial_says_what_the_browser_showed(archive: Archive) -> None:
    """The settings of the archive's browser hold for trials as well, and nothing is archived."""
    with Site() as site:
        site.add_html("/", "<script>document.body.append('bright words')</script>")
        words = ("publication", "add", "app", site.url("/"), "--set", "fetcher=auto", "--set", "wait=0")
        words = (*words, "--set", 'keep_rendered=["picture"]', "--try")  # the trial reads the text all the same
        text = run_command(*words, "--archive", archive.root).out
        assert f"{site.url('/')}: the browser showed 2 words" in text and "  bright words" in text
        assert "a browser can show pages here" in text
        _use_browser(archive, '[browser]\nprogram = "/none"\n')
        trial = json.loads(run_command(*words, "--archive", archive.root, "--json").out)
    (start,) = trial["shown"]
    assert (start["is_shown"], start["notes"]) == (False, "browser-missing")
    assert trial["browser"]["word"] == "browser-missing" and not list((archive.root / "content").glob("*.git"))


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        (NamespaceRules(may_clone=False), "kernel.unprivileged_userns_clone=1"),
        (NamespaceRules(is_held_by_apparmor=True), "kernel.apparmor_restrict_unprivileged_userns=0"),
        (NamespaceRules(limits={"user": 0, "net": 5}), "user.max_user_namespaces"),
        (NamespaceRules(is_root=True), "--cap-add SYS_ADMIN"),
        (NamespaceRules(is_filtered=True), "RestrictNamespaces"),
        (NamespaceRules(is_proc_masked=True), "ProtectKernelTunables"),
        (NamespaceRules(), 'fetcher = "wget"'),
    ],
)
def test_the_advice_is_of_what_is_in_the_way(rules: NamespaceRules, word: str) -> None:
    assert any(word in line for line in advice_for(rules))
    assert len(advice_for(rules)) <= 3, "and of nothing else"


def test_an_owner_without_a_name_has_no_home(tmp_path: Path) -> None:
    """As in containers: the archive is hidden all the same."""
    if os.geteuid() == 0:
        os.chown(tmp_path, 54_321, -1)
    assert tmp_path in chromium.hidden_folders("/bin/sh", tmp_path)


def test_the_rules_of_this_process_are_read() -> None:
    rules = NamespaceRules.here()
    assert rules.is_root is (os.geteuid() == 0)
    assert rules.limits is not None and set(rules.limits) <= {"user", "mnt", "pid", "net", "ipc", "uts"}


def test_the_addition_to_the_units_allows_what_the_browser_is_started_with(tmp_path: Path) -> None:
    """examples/webarc-browser.conf beside each unit: systemd knows all of it, and it names each kind of namespace."""
    addition = (ROOT / "examples/webarc-browser.conf").read_text("utf-8")
    wanted = {"--user", "--net", "--mount", "--pid", "--ipc", "--uts"}
    assert wanted <= set(chromium.isolated(["true"], user=None))
    kinds = re.search(r"^RestrictNamespaces=(.+)$", addition, re.MULTILINE)
    assert kinds is not None and set(kinds[1].split()) == {"user", "net", "mnt", "pid", "ipc", "uts"}
    for name in ("webarc-agent.service", "webarc-desk.service"):
        unit = (ROOT / "examples" / name).read_text("utf-8").replace("/usr/local/bin/webarc-agent", "/bin/true")
        assert "webarc-browser.conf" in unit
        copy, folder = tmp_path / name, tmp_path / f"{name}.d"
        copy.write_text(unit, "utf-8")
        folder.mkdir()
        (folder / "browser.conf").write_text(addition, "utf-8")
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
