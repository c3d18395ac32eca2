"""Finds records by name or number, in a catalogue that has a record for each capture."""

from __future__ import annotations

import os

from agent.catalogue.keeping import catch_up_records
from webarcfs.archive.catalogue import catalogue_database
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError

#: A number of more digits is none that SQLite could have.
_DIGITS = 15


def catalogue_of(place: Archive) -> Catalogue:
    """Return the catalogue, with a record for each capture; who may not write sees those that are there."""
    if directory.layout_of(place.root) < directory.WITH_CATALOGUE:
        raise UsageError(f"{place.root} is of an older webarcfs and has no records; `webarc-agent upgrade` makes them")
    if os.access(place.root, os.W_OK):
        catch_up_records(place)
    return Catalogue(place)


def one(place: Archive, catalogue: Catalogue, name: str) -> tuple[Record, str]:
    """Return a record by its name or its number, and the id of its blob. Raises NotFound."""
    if name.isdecimal():
        with catalogue_database.opened(place, catalogue) as tables:
            found = tables.id_of(int(name)) if len(name) <= _DIGITS else None
        if found is None:
            raise NotFound(f"there is no record {name}; `webarc-agent record list` lists them")
        name = found
    return catalogue.read(name)
