"""Units for several archives: the templates, and those that are written for an archive, which systemd must take."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.service.units import Part, UnitOf, unit_text
from tests.support import crawls, readercommand
from tests.support.agents import configure
from tests.support.crawls import run_command
from tests.support.site import Site
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive, create, path
from webarcfs.archive.model.errors import UsageError

archive = crawls.archive
pytestmark = pytest.mark.store

BEFORE = {
    "webarc-agent@.service": "webarc-agent.service",
    "webarc-desk@.service": "webarc-desk.service",
    "webarc-room@.service": "webarc-room.service",
    "webarc-watch@.service": "webarc-watch.service",
    "webarc-watch@.timer": "webarc-watch.timer",
}
TEMPLATES = [(part, name) for part in Part for name in part.templates]


def _template(name: str) -> str:
    return path("examples", name).read_text("utf-8")


def _verified(folder: Path, name: str) -> None:
    security = ["security", "--offline=true", "--threshold=100", "--no-pager"]
    for command in (["verify", "--man=no"], *([security] if name.endswith(".service") else [])):
        done = subprocess.run(
            ["systemd-analyze", *command, str(folder / name)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert not re.search("Unknown|ignoring|not executable|Failed", done.stderr), done.stderr


@pytest.mark.parametrize("part", list(Part))
def test_systemd_takes_the_templates(part: Part, tmp_path: Path) -> None:
    for name in part.templates:
        text = re.sub("/usr/local/bin/[a-z.-]+", "/bin/true", _template(name))
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name.replace("@", "@town")).symlink_to(tmp_path / name)
    for name in part.templates:
        _verified(tmp_path, name.replace("@", "@town"))


@pytest.mark.parametrize("template", sorted(BEFORE))
def test_a_template_protects_as_the_unit_of_one_archive_does(template: str) -> None:
    """What is said there of an archive at /srv/webarc is said here of each."""

    def lines(name: str) -> set[str]:
        text = (ROOT / "examples" / name).read_text("utf-8").replace("-%i", "").replace(" \\\n", "")
        return {line for line in text.splitlines() if line and not line.startswith(("#", "Exec", "EnvironmentFile"))}

    assert lines(template) == lines(BEFORE[template])


@pytest.mark.parametrize(
    "name", ["town", "with a blank", "\u00dcmlaut \u65e5\u672c", "50 % of $HOME; #x", "x" * 60, "a,b=c", "%i"]
)
@pytest.mark.parametrize("part", list(Part))
def test_systemd_takes_a_unit_for_any_folder(part: Part, name: str, tmp_path: Path) -> None:
    """And it gets the folder as it is: systemd prints the command that it would run."""
    archive = create(tmp_path / name)
    words = ["service", "install", part, "--archive", archive.root, "--name", "town", "--to", tmp_path / "units"]
    done = run_command(*words, *(["--on", tmp_path / f"on {name}"] if part is Part.MOUNT else []))
    assert done.code == 0, done.err
    unit = f"webarc-{part}@town.service"
    started = f"webarc-{part}@town{'.timer' if part is Part.WATCH else ''}"
    files = [str(tmp_path / "units" / template.replace("@", "@town")) for template in part.templates]
    lines = done.out.splitlines()
    assert "systemd does not read this folder" in lines[0]
    assert shlex.split(lines[1]) == ["install", "-D", "-m", "644", "-t", "/etc/systemd/system", *files]
    assert lines[2:5] == [
        f"  systemctl daemon-reload && systemctl enable --now {started}",
        "Whether it works:",
        f"  systemctl status {started}",
    ]
    for template in part.templates:
        _verified(tmp_path / "units", template.replace("@", "@town"))
    text = (tmp_path / "units" / unit).read_text()
    command = re.search("^ExecStart=(.*)$", text, re.MULTILINE)
    assert command is not None
    words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(command[1])]
    assert str(archive.root) in words
    assert Path(words[0]).is_file()
    assert "/srv/webarc" not in text and "/usr/local" not in text
    again = run_command("service", "install", part, "--archive", archive.root, "--name", "town",
                        "--to", tmp_path / "units", *(["--on", "/mnt/x"] if part is Part.MOUNT else []))  # fmt: skip
    assert again.code == 0, "what was written so is replaced"


def test_options_are_those_of_the_program_and_a_room_at_a_port_has_the_network(archive: Archive) -> None:
    done = run_command("service", "print", "room", "--archive", archive.root, "--", "--listen", "8080", "--host", "a b")
    assert '--listen 8080 --host "a b" $WEBARC_ROOM_OPTIONS' in done.out
    assert "--replay-listen" not in done.out and "PrivateNetwork" not in done.out
    assert "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n" in done.out
    done = run_command("service", "print", "room", "--archive", archive.root)
    assert "--replay-listen" in done.out and "PrivateNetwork=true" in done.out


def test_what_a_unit_may_touch_follows_the_archive(archive: Archive) -> None:
    archive.settings.write_text('[backup]\nto = "/media/a disk/webarc"\n')
    text = run_command("service", "print", "agent", "--archive", archive.root).out
    assert f'ReadWritePaths={archive.root} "-/media/a disk/webarc"\n' in text
    assert ("PrivateTmp=false" in text) == archive.root.is_relative_to("/tmp")
    unit = UnitOf(part=Part.AGENT, name="x", root=Path("/srv/x"), programs=Path("/opt/bin"), user="anna", group="staff")
    agent = _template("webarc-agent@.service")
    text = unit_text(agent, unit)
    assert "ProtectHome=true" in text and "PrivateTmp=true" in text
    assert "User=anna\nGroup=staff\n" in text
    at_home = dataclasses.replace(unit, programs=Path("/home/a/.venv/bin"))
    assert "ProtectHome=read-only" in unit_text(agent, at_home)


def test_desk_and_watch_see_the_backup_whose_age_they_tell(archive: Archive) -> None:
    archive.settings.write_text('[backup]\nto = "/run/user/backup"\n')
    for part in ("desk", "watch"):
        text = run_command("service", "print", part, "--archive", archive.root).out
        assert "ProtectHome=read-only" in text and "/run/user" not in text, "it reads it only"
    desk = UnitOf(part=Part.DESK, name="x", root=Path("/srv/x"), programs=Path("/opt/bin"), user="a", group="a")
    assert "ProtectHome=true" in unit_text(_template("webarc-desk@.service"), desk)
    reads = dataclasses.replace(desk, reads=(Path("/home/backup"),))
    assert "ProtectHome=read-only" in unit_text(_template("webarc-desk@.service"), reads)


def test_a_unit_of_ones_own_needs_no_root(archive: Archive, tmp_path: Path) -> None:
    for part, template in TEMPLATES:
        if part is Part.MOUNT:
            continue
        done = run_command(
            "service", "install", part, "--archive", archive.root, "--user", XDG_CONFIG_HOME=str(tmp_path)
        )
        assert done.code == 0 and "systemctl --user" in done.out, done.err
        assert "does not read" not in done.out and "  install " not in done.out
        unit = tmp_path / "systemd" / "user" / template.replace("@", "@archive")
        text = unit.read_text()
        assert not re.search("^(User|Group|Protect|Private|Capability|Restrict(?!Prevent|=|Sec))", text, re.MULTILINE)
        if template == "webarc-watch@.timer":
            assert "OnBootSec=5min\nOnUnitActiveSec=5min\n" in text and "WantedBy=timers.target" in text
        else:
            assert ("WantedBy=default.target" in text) == (part is not Part.WATCH)
        done2 = subprocess.run(
            ["systemd-analyze", "--user", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False,
            timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        )  # fmt: skip
        assert "Unknown" not in done2.stderr and "not executable" not in done2.stderr, done2.stderr


def test_what_others_wrote_and_what_systemd_cannot_be_told_is_refused(archive: Archive, tmp_path: Path) -> None:
    units = tmp_path / "units"
    units.mkdir()
    (units / "webarc-agent@town.service").write_text("[Unit]\n# mine\n")
    done = run_command("service", "install", "agent", "--archive", archive.root, "--name", "town", "--to", units)
    assert done.code == 1 and "was not written by this command" in done.err
    assert (units / "webarc-agent@town.service").read_text() == "[Unit]\n# mine\n"
    (units / "webarc-watch@town.service").write_text("[Unit]\n# mine\n")
    done = run_command("service", "install", "watch", "--archive", archive.root, "--name", "town", "--to", units)
    assert done.code == 1 and "webarc-watch@town.service was not written by this command" in done.err
    assert not (units / "webarc-watch@town.timer").exists(), "both or none"
    for words in (["agent", "--name", "a/b"], ["agent", "--name", "a@b c"], ["mount"], ["agent", "--on", "/mnt/x"],
                  ["agent", "--", "a\nb"]):  # fmt: skip
        done = run_command("service", "print", words[0], "--archive", archive.root, *words[1:])
        assert (done.code, done.out) == (1, ""), words
    odd = create(tmp_path / "a\nb")
    done = run_command("service", "print", "agent", "--archive", odd.root, "--name", "x")
    assert done.code == 1 and "systemd takes in no path" in done.err


@given(st.text(max_size=20), st.sampled_from(TEMPLATES))
def test_no_name_of_a_folder_makes_a_line_of_a_unit(name: str, template: tuple[Part, str]) -> None:
    part, file_name = template
    unit = UnitOf(part=part, name="x", root=Path("/srv") / name.replace("/", "_"), programs=Path("/opt/bin"), user="a",
                  group="a", point=Path("/mnt/x"))  # fmt: skip
    plain = UnitOf(part=part, name="x", root=Path("/srv/x"), programs=Path("/opt/bin"), user="a", group="a",
                   point=Path("/mnt/x"))  # fmt: skip
    try:
        text = unit_text(_template(file_name), unit)
    except UsageError:
        return
    keys = [line.partition("=")[0] for line in text.splitlines() if not line.startswith("#")]
    expected = unit_text(_template(file_name), plain)
    assert keys == [line.partition("=")[0] for line in expected.splitlines() if not line.startswith("#")]


# -- without a home folder ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", [None, "/nonexistent", ""])
def test_everything_works_without_a_home_folder(archive: Archive, tmp_path: Path, home: str | None) -> None:
    """As in a unit whose user has none: crawls by wget, git, the index, reports."""
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CONFIG_HOME", "USER")}
    environment |= {} if home is None else {"HOME": home}
    environment |= {"COLUMNS": "200"}

    def run(*words: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [*crawls.COMMAND, *words], capture_output=True, text=True, check=False, env=environment, timeout=240,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    with Site() as site:
        site.add_html("/", "harbour")
        configure(archive, {"name": "town", "urls": [site.url("/")], "private_addresses": True})
        run("start", "--once", "--archive", archive.root)
    run("status", "--archive", archive.root)
    run("metrics", "--archive", archive.root)
    run("report", "--archive", archive.root, "town")
    run("backup", "--archive", archive.root, tmp_path / "backup")
    run("maintain", "--archive", archive.root)
    run("verify", "--archive", archive.root)
    run("archives")
    run("service", "print", "agent", "--archive", archive.root)
    run("status", "--archive", "nobody", code=2)
    done = subprocess.run(
        [*readercommand.COMMAND, "serve", "--check", "--archive", archive.root, "--listen", "0"],
        capture_output=True, text=True, check=False, env=environment, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
