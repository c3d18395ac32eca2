"""Persons, pure: roles add up, refusals name the role that could, one human with two entries is one."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Acting, Person, names_of
from webarcfs.archive.catalogue.record import FIELDS, Warrant
from webarcfs.archive.catalogue.workflow import RIGHTS, Right, Role, may_edit, role_for, roles_with
from webarcfs.archive.config.settings import Publication, ReleaseSettings, Settings
from webarcfs.archive.model.errors import UsageError

pytestmark = pytest.mark.pure
_SUBSETS = [*chain.from_iterable(combinations(Role, size) for size in range(1, len(Role) + 1))]


def person(key: str, *roles: Role, name: str = "", unix: str = "", password: str = "hash") -> Person:
    return Person(key, name or key.title(), roles, unix, password)


@pytest.mark.parametrize("roles", _SUBSETS, ids="+".join)
def test_the_rights_of_roles_add_up(roles: tuple[Role, ...]) -> None:
    """BT-role-9, S-people-1."""
    one = person("anna", *roles)
    for right in Right:
        able = [role for role in roles if right in RIGHTS[role]]
        assert one.may(right) == bool(able)
        assert role_for(right, roles) == (able[0] if able else None)
    for field in FIELDS:
        for is_fetched in (False, True):
            alone = [may_edit(field, {role}, is_fetched=is_fetched) for role in roles]
            assert may_edit(field, set(roles), is_fetched=is_fetched) == any(alone)
    assert may_edit(FIELDS[0], set(Role), is_fetched=False) == may_edit(FIELDS[0], None, is_fetched=False)


def test_an_act_has_the_first_role_that_allows_it() -> None:
    acting = Acting("Anna", (Role.ADMINISTRATOR, Role.CURATOR), "anna")
    assert acting.warrant(Right.PEOPLE) == Warrant("administrator", "anna")
    assert acting.warrant(Right.RELEASE) == Warrant("curator", "anna")
    assert Acting("root", None).warrant(Right.RELEASE) == Warrant(), "an archive without people has no roles"


def test_a_refusal_names_the_own_roles_those_that_could_and_who_has_one() -> None:
    """S-people-3."""
    anna, ben = person("anna", Role.REVIEWER), person("ben", Role.CURATOR)
    gone = person("carl", Role.ARCHIVIST, password="")
    told = people.refusal(anna, Right.RELEASE, [anna, ben, gone])
    assert told == (
        "Anna is reviewer; to release crawls one needs the role archivist or curator; Ben may: ask there"
    ), "who cannot log in is nobody to ask"
    assert "nobody has it" in people.refusal(anna, Right.PEOPLE, [anna, ben])
    many = [person(f"p{number}", Role.CURATOR) for number in range(9)]
    assert "P0, P1, P2, P3, P4 and 4 more may" in people.refusal(anna, Right.RELEASE, many)
    assert roles_with(Right.PEOPLE) == (Role.ADMINISTRATOR,)


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        (("anna", "Anna", "abeispiel"), ("anna2", "Anna Beispiel", "abeispiel2"), False),
        (("anna", "Anna Beispiel", ""), ("anna-terminal", "anna  BEISPIEL", "ab"), True),  # the same name
        (("anna", "Anna", ""), ("a", "A. Beispiel", "anna"), True),  # a proxy takes the short name where no login is
        (("anna", "Anna", "ab"), ("ab", "Desk of Anna", ""), True),
        (("jos\u00e9", "Jos\u00e9", ""), ("j", "Jose\u0301", ""), True),  # Unicode spells it in two ways
        (("anna", "Anna", "x"), ("ben", "Ben", "y"), False),
        (("a", "\u4f8b", ""), ("b", "\u4f8b", ""), True),
    ],
)
def test_entries_that_share_a_name_are_one_human(
    first: tuple[str, str, str], second: tuple[str, str, str], is_one: bool
) -> None:
    """S-people-5."""
    persons = [Person(key, name, (Role.ARCHIVIST,), unix, "hash") for key, name, unix in (first, second)]
    assert len(people.humans(persons)) == (1 if is_one else 2)
    acting = people.acting_person({each.key: each for each in persons}, persons[1])
    known = people.acting_person({each.key: each for each in persons}, persons[0])
    assert acting.names.isdisjoint(known.names) == (not is_one)


_NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f", ""])


@given(st.lists(st.tuples(_NAMES, _NAMES, _NAMES), max_size=8))
@settings(max_examples=examples(200), deadline=None)
def test_humans_are_the_parts_of_what_names_connect(entries: list[tuple[str, str, str]]) -> None:
    persons = [Person(f"k{number}{key}", name or f"n{number}", (Role.ARCHIVIST,), unix)
               for number, (key, name, unix) in enumerate(entries)]  # fmt: skip
    groups = people.humans(persons)
    assert sorted(each.key for group in groups for each in group) == sorted(each.key for each in persons)
    names = [names_of(persons, (each.key,)) for each in persons]
    for one, others in zip(persons, names, strict=True):
        group = next(group for group in groups if one in group)
        assert others == frozenset().union(*(names_of(persons, (each.key,)) for each in group))
    distinct = {group[0].key: names_of(persons, (group[0].key,)) for group in groups}
    for left, right in combinations(distinct.values(), 2):
        assert left.isdisjoint(right)


def test_what_one_person_cannot_do_with_two_persons() -> None:
    anna, twin = person("anna", *Role), person("anna2", *Role, name="ANNA")
    assert "and you are alone" in people.lacks_second([anna])
    assert "and you are alone" in people.lacks_second([anna, twin]), "two entries of one human"
    assert "nobody else may release" in people.lacks_second([anna, person("ben", Role.ADMINISTRATOR)])
    assert not people.lacks_second([anna, person("ben", Role.REVIEWER)]), "Ben checks, Anna releases"
    assert not people.lacks_second([anna, person("ben", Role.CURATOR)])
    assert people.lacks_second([anna, person("ben", Role.CURATOR, password="")]), "Ben cannot log in"
    assert people.lacks_second([person("ben", Role.REVIEWER), person("rita", Role.REVIEWER)]), "nobody releases"
    assert not people.wants_two(Settings())
    assert people.wants_two(Settings(release=ReleaseSettings(two_persons=True)))
    assert people.wants_two(Settings(publications=(Publication(name="p", urls=("http://e/",), two_persons=True),)))


@pytest.mark.parametrize(
    "name",
    [
        "Anna",
        "\u05e2\u05e8\u05d1 \u05d1\u05e8",
        "\u4f8b\u5b50",
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
        "O'Neil <x>",
        "&amp;",
    ],
)
def test_a_name_may_be_in_every_script(name: str) -> None:
    assert people.checked_name(f"  {name} ", "a name") == name


@pytest.mark.parametrize(
    "name", ["a\nb", "a\0b", "a\u202eb", "a\u2066b", "\ufeffa", "a\udcffb", "x" * 201, "a\x1b[31m", "a\u2028b"]
)
def test_a_name_that_no_list_could_show_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"a name has (200 characters|the character U\+)"):
        people.checked_name(name, "a name")
