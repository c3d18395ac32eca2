"""A made-up office's site with what seed 2 says of its own: six kinds of reference pages, an error page, a search form.

`settings` is the webarc.toml of its archive: seed 2's procedure, each step by hand. `must_be_filled` says what the
record of a snapshot tells that went through it, by whatever means.
"""

from __future__ import annotations

from tests.support.site import Site
from webarcfs.archive.catalogue.record import FIELDS, Record

#: Name → path of the six kinds of reference pages (seed 2, section 3.4.8).
PAGES = {
    "Start page": "/",
    "Publications": "/publications/",
    "Library": "/library/",
    "DIP": "/documents/",
    "Minutes": "/minutes/",
    "Contact": "/contact",
}
#: Extension → the programs that made such files then, and that read them today.
FORMATS = {"html": ("CMS 4", "Firefox 1.5"), "pdf": ("Acrobat 6", "")}
#: What was done for the preservation of a snapshot: the fields 76 to 79.
MEASURE = ("migration", "d", "s", "p")
#: Fields for remarks where nobody made any, and nothing went wrong.
REMARKS = frozenset({20, 30, 45, 47, 64, 73})
#: Fields that name who did it.
_PERSONS = (8, 32, 36, 54, 61, 66)
ERROR_MARK = "<h1>Fehlermeldung</h1>"
_MENU = "".join(f'<li><a href="{path}">{name}</a></li>' for name, path in PAGES.items())


def build(site: Site) -> None:
    """Put the pages of the office on a site."""
    search = '<form action="http://suche.example.org/suche.jsp" method="get"><input name="q"></form>'
    for name, path in PAGES.items():
        body = {
            "Start page": 'The Präsident speaks & all listen <a href="http://www.example.com/?a=1&b=2">abroad</a>',
            "Publications": '<a href="paper.pdf">the paper on archives</a><br>two papers',
            "Library": '<a href="/library/catalogue/start">catalogue</a>',
            "DIP": '<a href="http://dip.example.org/search">proceedings</a>',
            "Minutes": '<a href="/bic/plenary/16001.txt">minutes of the first session</a>',
            "Contact": '<a href="mailto:post@example.org">write to us</a><p>Berlin',
        }[name]
        text = f"<ul>{_MENU}</ul>{search}<h1>{name}</h1>{body}<img src='/eagle.png'>"
        page = f"<!DOCTYPE html><html><head><title>{name}</title></head><body>{text}</body></html>"
        site.add(path, page, headers={"Server": "Apache/2.0.54 (Debian GNU/Linux)"})
    site.add("/publications/paper.pdf", b"%PDF-1.4 paper", "application/pdf")
    site.add("/eagle.png", b"\x89PNG eagle", "image/png")
    site.add_html("/gone", f"{ERROR_MARK}<p>nothing here")
    site.add_html(
        "/contact", f'<ul>{_MENU}</ul><a href="mailto:post@example.org">write to us</a><a href="/gone">old</a>'
    )
    site.add("/library/catalogue/start", "never asked for")
    site.add("/bic/plenary/16001.txt", "never asked for", "text/plain")


def settings(site: Site, *, more: str = "", backup: str = "") -> str:
    """The settings of the archive."""
    expects = {
        "Start page": 'expects = "external"',
        "Publications": 'expects = "text"\ntext = "paper on archives"',
        "Library": 'expects = "excluded"\ntext = "catalogue"',
        "DIP": 'expects = "excluded"\ntext = "dip.example.org"',
        "Minutes": 'expects = "excluded"\nby = "person"',
        "Contact": 'expects = "mailto"',
    }
    checks = "".join(
        f'[[publication.check]]\nname = "{name}"\nurl = "{site.url(path)}"\n{expects[name]}\n'
        for name, path in PAGES.items()
    )
    return f"""
step_by_step = true
release = "by-hand"
{more}
[describe]
signature = "5100"
provenance = "Press office"
project = "Internet"
[backup]
to = "{backup}"
medium = "disk 7"
[[publication]]
name = "office"
urls = ["{site.url()}"]
wait = 0
private_addresses = true
interval = "1 week"
check_search = "paper"
exclude_hosts = ["dip.example.org"]
{checks}
[[publication.exclude]]
match = "{site.host}/library/catalogue/*"
reason = "a database"
[[publication.exclude]]
match = "{site.host}/bic/*"
reason = "kept elsewhere"
[[publication.rule]]
match = "suche.example.org"
on = "form"
does = "search"
[[publication.error_page]]
contains = "{ERROR_MARK}"
"""


def must_be_filled(record: Record, person: str) -> None:
    """Hold a record to what the whole procedure tells, which one person went through."""
    texts = {each.number: record.text(each.number) for each in FIELDS if not each.repeats}
    assert {number for number, text in texts.items() if not text} <= REMARKS, texts
    assert {texts[number] for number in _PERSONS} == {person}, [texts[number] for number in _PERSONS]
    assert [record.measures[0][number].text for number in range(75, 80)] == [person, *MEASURE]
    assert set(record.measures[0]) == set(range(74, 82))
    assert texts[9] == "Debian", "as its server names it"
    assert texts[26] == "html: CMS 4; pdf: Acrobat 6" and texts[27] == "html: Firefox 1.5"
    assert (texts[2], texts[3], texts[5], texts[71]) == ("5100", "Press office", "new style", "disk 7")
    assert (texts[44], texts[46], texts[50], texts[51]) == ("1", "5", "7", "0")
    machine = [each for each in PAGES if each != "Minutes"]
    assert [line.partition(":")[0] for line in texts[62].split("; ")] == [*machine, "Minutes"]
    assert texts[62].count("good") == 6 and "search for 'paper': good" in texts[63]
    assert int(texts[68]) > 10_000
