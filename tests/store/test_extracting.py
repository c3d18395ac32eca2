"""Texts of documents: what people see, from formats as they are found, sound or hostile, in a process with limits."""

from __future__ import annotations

import io
import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import archives
from tests.support.dated_pages import DOCX, pdf
from tests.support.properties import IS_LONG, examples
from webarcfs.content.extractors import extracting
from webarcfs.content.extractors.extracted import LONGEST, SENTENCES, Extracted, Fault
from webarcfs.texts import extraction
from webarcfs.texts.extraction import Extraction, ExtractionRequest

pytestmark = pytest.mark.store
_PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_ODT = "application/vnd.oasis.opendocument.text"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def _of(data: bytes, mime_type: str, content_type: str = "") -> Extracted:
    return extracting.extract(io.BytesIO(data), mime_type, content_type)


def _html(page: str) -> str:
    return _of(page.encode(), "text/html", "text/html; charset=utf-8").body


def _zip(entries: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("page", "body"),
    [
        ("<b>W</b>ord <i>a</i>nd", "Word and"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a\nb"),
        ("a<br>b<p>c<p>d", "a\nb\nc\nd"),
        ("a<script>x()</script><style>y</style><noscript>n</noscript><template>t</template>b", "ab"),
        ("a<p hidden>x</p><div style='display : none'>y<div>z</div></div>b", "ab"),
        ("a<!-- x --><iframe>y</iframe>&amp;&eacute;&#x4e2d;", "a&é中"),
        ("<title>t</title><body>b", "b"),
        ("<ul><li>one<li>two</ul><select><option>o<option>p</select>", "one\ntwo\no\np"),
        ("<pre>a\n   b</pre>", "a\nb"),
        ("a\x1b[31mb\x00c", "a [31mbc"),
        ("<div>" * 10_000 + "deep" + "</div>" * 10_000, "deep"),
        ("", ""),
    ],
)
def test_html_as_a_browser_shows_it(page: str, body: str) -> None:
    assert _html(page) == body


def test_long_words_are_shown_to_the_bound() -> None:
    body = _html("<p>" + "x" * 10_000_000)
    assert set(body[:9_999_990]) == {"x"} and abs(len(body) - 10_000_000) <= 10


def test_the_parts_of_a_page() -> None:
    page = (
        '<html lang="de-AT"><head><meta name="Description" content="was es ist"></head><h1>Der <b>Kopf</b></h1>'
        '<h2>Zwei</h2><img alt="ein Bild">Wenig Text'
    )
    found = _of(page.encode(), "text/html")
    assert (found.headings, found.description, found.language) == (
        "Der Kopf\nZwei",
        "was es istein Bild".replace("istein", "ist\nein"),
        "de",
    )
    long = "Der Bericht über die Häuser der Stadt liegt nun vor und kann von allen bestellt werden."
    assert _of(f"<html lang=en>{long}".encode(), "text/html", "text/html; charset=utf-8").language == "de"


@pytest.mark.parametrize(
    ("data", "content_type", "body"),
    [
        ("Häuser".encode("latin-1"), "text/plain", "Häuser"),
        ("Häuser".encode("utf-16"), "text/plain", "Häuser"),
        ("\ufeffHäuser".encode(), "text/plain; charset=iso-8859-1", "Häuser"),
        # what the server says holds, as in browsers
        ("Häuser".encode("latin-1"), "text/plain; charset=utf-8", "H\ufffduser"),
        ("Häuser".encode(), "text/plain; charset=iso-8859-1", "HÃ¤user"),
    ],
)
def test_charsets(data: bytes, content_type: str, body: str) -> None:
    assert _of(data, "text/plain", content_type).body == body
    page = data if b"\0" in data else data + b"<p>"
    assert _of(page, "text/html", content_type.replace("plain", "html")).body == body


def test_office_files() -> None:
    paragraph = (
        f"<w:document {_W}><w:body><w:p><w:r><w:t>one</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:r><w:tab/><w:t>two</w:t><w:instrText>PAGE</w:instrText></w:r></w:p><w:p><w:t>three</w:t></w:p></w:body></w:document>"
    )
    core = '<c xmlns:dc="d"><dc:title>Title</dc:title><dc:subject>about</dc:subject></c>'
    found = _of(
        _zip({"word/document.xml": paragraph, "docProps/core.xml": core, "word/vbaProject.bin": b"macro"}), DOCX
    )
    assert (found.body.split(), found.title, found.fault) == (["one", "two", "three"], "Title", "")
    slide = '<p xmlns:a="a"><a:p><a:t>slide {}</a:t></a:p></p>'
    slides = {f"ppt/slides/slide{number}.xml": slide.format(number) for number in (10, 2, 1)}
    assert _of(_zip({"ppt/presentation.xml": "<p/>", **slides}), _PPTX).body == "slide 1\nslide 2\nslide 10"
    strings = "<sst><si><t>shared</t></si><si><t>text</t></si></sst>"
    sheet = "<s><row><c t='inlineStr'><is><t>inline</t></is></c><c><f>SUM(A1)</f><v>7</v></c></row></s>"
    book = _zip({"xl/workbook.xml": "<w/>", "xl/sharedStrings.xml": strings, "xl/worksheets/sheet1.xml": sheet})
    assert _of(book, _XLSX).body.split() == ["shared", "text", "inline", "7"]
    content = '<o xmlns:t="t"><t:p>a<t:span>b</t:span>c<t:s/>d<t:line-break/>e</t:p>'
    content += "<t:tracked-changes><t:p>x</t:p></t:tracked-changes></o>"
    assert _of(_zip({"content.xml": content}), _ODT).body == "abc d\ne"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), Fault.ENCRYPTED),
        (b"no zip", Fault.DAMAGED),
        (_zip({"content.xml": "<a>x</a>"})[:-30], Fault.DAMAGED),
        (_zip({"other.xml": "<a/>"}), Fault.DAMAGED),
        (_zip({"content.xml": "<a><b></a>"}), Fault.DAMAGED),
        (_zip({"content.xml": "<a/>"}), Fault.NO_TEXT),
        (_zip({"content.xml": "x", "META-INF/manifest.xml": "<manifest:encryption-data/>"}), Fault.ENCRYPTED),
    ],
    ids=range(7),
)
def test_office_files_that_are_hostile(data: bytes, fault: Fault) -> None:
    assert _of(data, _ODT).fault == fault


_SWELLING = [(b" ", 210 << 20, Fault.TOO_LONG), (b"<b" + b" " * (1 << 20) + b"/>", 210, Fault.TOO_LARGE)]
#: Takes minutes: `make soak ARGS=properties` has it.
_OF_MANY_ELEMENTS = (b"<b/>", 60 << 20, Fault.TOO_LARGE)


@pytest.mark.parametrize(("part", "times", "fault"), [*_SWELLING, *[_OF_MANY_ELEMENTS] * IS_LONG])
def test_office_files_that_swell(part: bytes, times: int, fault: Fault) -> None:
    assert _of(_zip({"content.xml": b"<a>" + part * times + b"</a>"}), _ODT).fault == fault


def test_xml_reads_no_other_file() -> None:
    entity = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>before &x; after</a>'
    laughs = (
        '<!DOCTYPE a [<!ENTITY a0 "ha">'
        + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
        + "]><a>&a11;</a>"
    )
    for text in (entity, laughs):
        for found in (_of(_zip({"content.xml": text}), _ODT), _of(text.encode(), "application/xml")):
            assert "root:" not in found.body and len(found.body) < 1_000_000


def test_pdfs() -> None:
    found = _of(pdf("giraffe and zebra", "okapi"), "application/pdf")
    assert (found.body.split(), found.fault) == (["giraffe", "and", "zebra", "okapi"], "")
    assert _of(pdf(""), "application/pdf").fault == Fault.NO_TEXT
    for harm in (b"", b"%PDF-1.4", pdf("x")[:300], os.urandom(5_000)):
        assert _of(harm, "application/pdf").fault == Fault.DAMAGED
    assert _of(_encrypted(), "application/pdf").fault == Fault.ENCRYPTED


def _encrypted() -> bytes:
    """A PDF file that wants a password which nobody knows."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [] /Count 0 >>",
        b"<< /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <%s> /U <%s> >>" % (b"11" * 32, b"22" * 32),
    ]
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"xref\n0 4\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size 4 /Root 1 0 R /Encrypt 3 0 R /ID [<%s> <%s>] >>\nstartxref\n%d\n%%%%EOF" % (
        b"33" * 16,
        b"33" * 16,
        len(data),
    )
    return data + table + trailer


def test_a_pdf_of_2000_pages() -> None:
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in range(2_000):
        stream = f"BT /F 12 Tf 72 700 Td (word{page}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count 2000 /Kids [{' '.join(kids)}] >>"
    data, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    data += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{data.rindex('xref')}\n%%EOF"
    found = _of(data.encode(), "application/pdf")
    assert found.body.split() == [f"word{page}" for page in range(2_000)]


def test_plain_formats() -> None:
    rtf = rb"{\rtf1\ansi{\fonttbl\f0 Arial;}\f0 one \b two\b0\par H\'e4user}"
    assert _of(rtf, "application/rtf").body.split() == ["one", "two", "Häuser"]
    assert _of(b"no rtf", "text/rtf").fault == Fault.DAMAGED
    mail = (
        b"From: a@example.org\nTo: b@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="x"\n\n--x\n'
        b"Content-Type: text/html; charset=utf-8\n\n<p>giraffe<script>no</script>\n"
        b"--x\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\nemVicmE=\n--x--\n"
    )
    found = _of(mail, "message/rfc822")
    assert (
        found.title == "Grüße"
        and {"giraffe", "zebra", "a@example.org"} <= set(found.body.split())
        and "no" not in found.body.split()
    )
    assert _of(b'\xff\xfe: \x00\nContent-Type: multipart/x; boundary="\n\n', "message/rfc822").fault in (
        "",
        Fault.NO_TEXT,
    )
    assert (
        _of(b"<rss><item><title>a</title><description>b</description></item></rss>", "application/rss+xml").body
        == "a\nb"
    )
    assert _of(b"a { b: c }", "text/css").body == "" == _of(b"a { b: c }", "text/css").fault
    assert _of(b"x", "application/msword").fault == Fault.NO_EXTRACTOR
    assert _of(b"ab " * (LONGEST // 2), "text/plain").fault == Fault.TOO_LONG


def test_each_fault_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Fault) - {Fault.NONE}


@given(
    st.binary(max_size=2_000),
    st.sampled_from([*extracting._EXTRACTORS, "text/plain", "text/xml", "image/svg+xml", "image/png"]),
)
@settings(deadline=None, max_examples=examples(150))
def test_any_bytes_have_a_clean_text(data: bytes, mime_type: str) -> None:
    start = {"application/pdf": b"%PDF-1.4\n", "text/rtf": b"{\\rtf1 ", DOCX: b"PK\x03\x04"}.get(mime_type, b"")
    found = _of(start + data, mime_type)
    for text in (found.body, found.title, found.headings, found.description):
        assert all(char.isprintable() or char == "\n" or ord(char) > 0x9F for char in text)
    assert found.fault in set(Fault)


# -- the process -------------------------------------------------------------------------------------------------------


def test_documents_come_in_order_and_a_death_costs_one(tmp_path: Path) -> None:
    store = archives.store_of(archives.make_archive(tmp_path), archives.DOMAIN)
    blobs = [store.write_blob(f"<p>word{number}".encode()) for number in range(100)]
    heavy = store.write_blob(_zip({"content.xml": b"<a>" + b"<b/>" * (60 << 20) + b"</a>"}))
    requests = [
        (number, ExtractionRequest(str(store.path), blob, "", "text/html")) for number, blob in enumerate(blobs)
    ]
    requests.insert(30, (1_000, ExtractionRequest(str(store.path), "0" * 40, "", "text/html")))
    requests.insert(60, (2_000, ExtractionRequest(str(store.path), heavy, "", _ODT)))
    with Extraction[int]() as run:
        found = []
        for item, text in run.texts(iter(requests)):
            found.append((item, text))
            if item == 40:
                assert run._process is not None
                run._process.kill()
        process = run._process
    assert [item for item, _ in found] == [item for item, _ in requests]
    by_number = dict(found)
    assert by_number[1_000].fault == Fault.DAMAGED and by_number[2_000].fault
    lost = [number for number in range(100) if by_number[number].body != f"word{number}"]
    assert len(lost) <= 1 and all(by_number[number].fault for number in lost)
    assert process is not None and process.poll() is not None


def test_the_process_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long is given up, and the next one is read."""
    store = archives.store_of(archives.make_archive(tmp_path), archives.DOMAIN)
    fifo = "text/html"
    blob = store.write_blob(b"<p>word")
    monkeypatch.setattr(extraction, "PATIENCE", 0.2)
    with Extraction[int]() as run:
        begun = time.monotonic()
        texts = run.texts(iter([(1, ExtractionRequest(str(store.path), blob, "", fifo))]))
        # The process is stopped, so that it cannot answer.
        run._send(ExtractionRequest(str(store.path), blob, "", fifo))
        assert run._process is not None
        os.kill(run._process.pid, 19)
        assert next(texts)[1].fault == Fault.TOO_SLOW
        assert time.monotonic() - begun < 60
    assert run._process is None
