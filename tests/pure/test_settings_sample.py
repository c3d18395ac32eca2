"""The webarc.toml that `init` writes: it changes nothing, nor do its lines when they are in force."""

from __future__ import annotations

import dataclasses
import re
import tomllib

import pytest

from webarcfs.archive.config import settings_files
from webarcfs.archive.config.settings import CrawlSettings, Settings
from webarcfs.archive.config.settings_sample import sample_settings, uncommented
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import SettingsError

pytestmark = pytest.mark.pure

TEXT = sample_settings()


def test_as_it_is_written_the_defaults_hold() -> None:
    assert settings_files.parse(TEXT, "webarc.toml") == Settings()


def test_with_all_lines_in_force_the_defaults_hold_too() -> None:
    settings = settings_files.parse(uncommented(TEXT), "webarc.toml")
    assert dataclasses.replace(settings, profiles={}, publications=()) == Settings()
    assert settings.profiles["pages"].include == ("text/*", "image/*")
    (publication,) = settings.publications
    assert (publication.name, publication.crawl.interval) == ("example", Interval(1, "week"))


def test_every_setting_of_every_table_is_there_with_its_help() -> None:
    tables = tomllib.loads(uncommented(TEXT))
    prose = " ".join(line.removeprefix("# ") for line in TEXT.splitlines() if line.startswith("# "))
    for field in dataclasses.fields(Settings):
        if not dataclasses.is_dataclass(field.default):
            continue
        table = tables if field.name == "release" else tables[field.name]
        for setting in dataclasses.fields(field.default):
            if "check" not in setting.metadata:
                continue
            key = setting.metadata.get("key", setting.name)
            assert (key in table) != (f"# {key} is not set\n" in TEXT), key
            assert setting.metadata["help"] in prose, key


def test_one_line_in_force_changes_one_setting() -> None:
    for field in dataclasses.fields(CrawlSettings):
        text = re.sub(rf"^#({field.name} = )", r"\1", TEXT, count=1, flags=re.MULTILINE)
        assert text != TEXT
        assert settings_files.parse(text, "webarc.toml") == Settings(), field.name
    text = TEXT.replace("#depth = 5", "depth = 2")
    assert settings_files.parse(text, "webarc.toml").crawl == CrawlSettings(depth=2)


def test_lines_are_as_wide_as_people_read() -> None:
    assert max(len(line) for line in TEXT.splitlines() if line.startswith("# ")) <= 100  # a list is one line


def test_a_heading_that_stands_there_twice_is_explained() -> None:
    with pytest.raises(SettingsError, match=r"\[crawl\] stands there already, so write below that heading"):
        settings_files.parse(f"{TEXT}\n[crawl]\ndepth = 3\n", "webarc.toml")
