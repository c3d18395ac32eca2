"""/Cr-12.2/: titles come out right whatever a page is encoded in, and whatever it says it is encoded in."""

import tracemalloc

import charset_normalizer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.content.text import LONGEST_TITLE, decode_charset, fold, title_of

pytestmark = pytest.mark.pure

JAPANESE = "日本語のウェブページです。これは文字コードの判定を試すための文章であり、いくつかの文を含みます。"
RUSSIAN = "Это русская страница, которая содержит текст для проверки определения кодировки."
FRENCH = "Le déjeuner était très bon, où êtes-vous allés cet été ? Ça va être génial."
CHINESE = "这是一个用于测试字符编码检测的中文网页，包含一些句子。北京的天气很好。"


def page(title: str, head: str = "", body: str = "") -> str:
    return f"<!DOCTYPE html><html><head>{head}<title>{title}</title></head><body><p>{body or title}</p></body></html>"


def meta(charset: str) -> str:
    return f'<meta http-equiv="Content-Type" content="text/html; charset={charset}">'


@pytest.mark.parametrize(
    ("body", "content_type", "charset"),
    [
        # a byte order mark goes before everything
        (b"\xef\xbb\xbfabc", "text/html; charset=euc-jp", "utf-8"),
        (page("é").encode("utf-16"), "", "utf-16-le"),
        (b"\xfe\xff" + page("é").encode("utf-16-be"), "text/html; charset=utf-8", "utf-16-be"),
        # UTF-16 without a mark, with and without a word on it
        (page(JAPANESE).encode("utf-16-le"), "", "utf-16-le"),
        (page(JAPANESE).encode("utf-16-be"), "", "utf-16-be"),
        (page("ascii").encode("utf-16-le"), "text/html; charset=utf-16", "utf-16-le"),
        (page(FRENCH).encode("utf-16-be"), "text/html; charset=utf-16", "utf-16-be"),
        (page(FRENCH).encode("utf-16-le"), "text/html; charset=iso-8859-1", "utf-16-le"),
        (page(RUSSIAN).encode("utf-32-le"), "", "utf-32-le"),
        # UTF-8 that is more than ASCII is UTF-8, whatever is declared
        (page("é").encode(), "text/html; charset=iso-8859-1", "utf-8"),
        (page("é", meta("windows-1252")).encode(), "", "utf-8"),
        (page("日本").encode() + "日".encode()[:2], "", "utf-8"),
        # the header, then the document
        (page(FRENCH, meta("euc-jp")).encode("cp1252"), "text/html; charset=iso-8859-1", "cp1252"),
        (page(JAPANESE, meta("shift_jis")).encode("cp932"), "text/html", "cp932"),
        (page(JAPANESE, '<meta charset="EUC-JP">').encode("euc_jp"), "", "euc_jp"),
        (page(RUSSIAN, '<meta charset="koi8-r">').encode("koi8-r"), "", "koi8-r"),
        (f'<?xml version="1.0" encoding="big5"?><rss>{"中文" * 9}</rss>'.encode("big5"), "text/xml", "big5hkscs"),
        (page(CHINESE, meta("gb2312")).encode("gb18030"), "", "gb18030"),
        # ASCII: what is declared holds for the rest of the body, which may have more
        (b"<p>plain", "text/html; charset=windows-1251", "cp1251"),
        (b"<p>plain", "", "utf-8"),
        (b"", "", "utf-8"),
        (b"<p>plain", "text/html; charset=utf-16", "utf-8"),  # false: there are no NULs
        (b'<meta charset="utf-16"><p>plain', "", "utf-8"),
        # ISO-2022-JP is ASCII by its bytes
        (page(JAPANESE, meta("iso-2022-jp")).encode("iso2022_jp"), "", "iso2022_jp"),
        (page(JAPANESE).encode("iso2022_jp"), "", "iso2022_jp"),
        (b"<p>plain", "text/html; charset=ISO-2022-JP", "iso2022_jp"),
        # no charset at all
        (page(JAPANESE).encode("euc_jp"), "", "euc_jp"),
        (page(JAPANESE).encode("cp932"), "", "cp932"),
        (page(RUSSIAN).encode("cp1251"), "text/html", "cp1251"),
        (page(CHINESE).encode("gb18030"), "", "gb18030"),
        (page(FRENCH).encode("cp1252"), "", "cp1252"),
        (page("Größe – Übersicht").encode("cp1252"), "", "cp1252"),
        (b"caf\xe9", "", "cp1252"),  # and no UTF-8 that is cut off
        # a false charset is not believed
        (page(FRENCH, meta("utf-8")).encode("cp1252"), "text/html; charset=utf-8", "cp1252"),
        (page(RUSSIAN, meta("utf-8")).encode("cp1251"), "", "cp1251"),
        (page(JAPANESE).encode("cp932"), "text/html; charset=euc-jp", "cp932"),
        (page(FRENCH).encode("cp1252"), "text/html; charset=utf-16", "cp1252"),
        # one broken byte does not make a UTF-8 page another encoding's
        (page(RUSSIAN + "|").encode().replace(b"|", b"\xff"), "text/html; charset=utf-8", "utf-8"),
        # what is no encoding of the web
        (page(FRENCH).encode("cp1252"), "text/html; charset=zlib", "cp1252"),
        (page(FRENCH).encode("cp1252"), "text/html; charset=unicode_escape", "cp1252"),
        (page(FRENCH).encode("cp1252"), "text/html; charset=nonsense", "cp1252"),
        (b"+ADw-script+AD4-", "text/html; charset=utf-7", "utf-8"),
    ],
)
def test_charset(body: bytes, content_type: str, charset: str) -> None:
    assert decode_charset(body, content_type) == charset


def test_the_detector_is_asked_only_when_nothing_else_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the detector is slow")

    monkeypatch.setattr(charset_normalizer, "from_bytes", refuse)
    for body, content_type in (
        (b"plain", ""),
        ("é".encode(), ""),
        (page(FRENCH).encode("cp1252"), "text/html; charset=windows-1252"),
        (page(JAPANESE).encode("utf-16-le"), ""),
    ):
        decode_charset(body, content_type)


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<title>Plain</title>", "Plain"),
        ("<html><head><title>\n  Two\t lines\u00a0here \n</title>", "Two lines here"),
        ("<TITLE lang=en>a &amp; b &eacute; &#8211; c</TITLE>", "a & b é – c"),
        ("<title>a<b>c</b></title>", "a<b>c</b>"),
        ("<title>a\x00b\x0bc\x1fd\x7fe\x85f\ufffeg\uffffh</title>", "abcdefgh"),
        ("<title>a&#11;b&#xFFFE;c</title>", "abc"),
        ("<title>first</title><title>second</title>", "first"),
        ("<title></title><p>nothing", ""),
        ("<title/><p>nothing", ""),
        ("<!-- <title>no</title> --><title>yes</title>", "yes"),
        ('<script>"<title>no</title>"</script><title>yes</title>', "yes"),
        ("<svg><title>drawing</title></svg><title>page</title>", "page"),
        ("<body><svg><g><title>drawing</title></g></svg>", ""),
        ("<body><h1>x</h1><title>late</title>", "late"),
        ("<title>Cut off", "Cut off"),
        ("no markup at all", ""),
        ("", ""),
        ("<", ""),
        ("<b>" * 100_000 + "<title>deep</title>", "deep"),
    ],
)
def test_title_of_html(body: str, title: str) -> None:
    assert title_of([body.encode()], "utf-8", "text/html") == title


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<rss><channel><title>News &amp; more</title><item><title>One</title></item></channel></rss>", "News & more"),
        ('<feed xmlns="http://www.w3.org/2005/Atom"><title type="xhtml"><div>a <b>c</b></div></title></feed>', "a c"),
        ("<rss><title>x <![CDATA[<b>]]></title></rss>", "x <b>"),
        ('<svg xmlns="http://www.w3.org/2000/svg"><title>Drawing</title></svg>', "Drawing"),
        ("<rss><item><title>Cut", "Cut"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><title>t &x;</title></a>', "t"),
        ("<rss><title>a&#xD800;b&#xFFFE;c&#1;d</title></rss>", "abcd"),
        ("not xml", ""),
        ("", ""),
    ],
)
def test_title_of_other_xml(body: str, title: str) -> None:
    assert title_of([body.encode()], "utf-8", "application/rss+xml") == title


def test_entities_are_not_expanded() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE r [<!ENTITY e0 "0123456789">{levels}]><r><title>&e11;</title></r>'
    assert len(title_of([bomb.encode()], "utf-8", "text/xml")) < 10


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "euc_jp", "cp932", "iso2022_jp", "utf-8"])
@pytest.mark.parametrize("mime_type", ["text/html", "application/xhtml+xml"])
def test_title_in_any_encoding_and_any_pieces(charset: str, mime_type: str) -> None:
    body = page("日本語", meta("windows-1252")).encode(charset)
    assert title_of([body], charset, mime_type) == "日本語"
    assert title_of([body[n : n + 1] for n in range(len(body))], charset, mime_type) == "日本語"


def test_the_parser_believes_no_declaration_in_the_document() -> None:
    body = '<?xml version="1.0" encoding="euc-jp"?><rss><title>é</title></rss>'.encode()
    assert title_of([body], "utf-8", "text/xml") == "é"


@pytest.mark.parametrize("mime_type", ["text/plain", "image/png", "", "application/pdf"])
def test_other_types_have_no_title(mime_type: str) -> None:
    assert title_of([b"<title>x</title>"], "utf-8", mime_type) == ""


def test_a_title_of_a_megabyte_is_cut() -> None:
    assert title_of([page("é" * (1 << 20)).encode()], "utf-8", "text/html") == "é" * LONGEST_TITLE


def test_reading_stops_at_the_end_of_the_title() -> None:
    def chunks() -> object:
        yield page("early").encode()
        raise AssertionError("read on")

    assert title_of(chunks(), "utf-8", "text/html") == "early"  # type: ignore[arg-type]


def test_reading_stops_after_a_megabyte() -> None:
    read = 0

    def chunks() -> object:
        nonlocal read
        while True:
            read += 1 << 16
            yield b"<p>" + b"x" * ((1 << 16) - 3)

    tracemalloc.start()
    assert title_of(chunks(), "utf-8", "text/html") == ""  # type: ignore[arg-type]
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert read <= (1 << 20) + (1 << 16)


@given(st.text())
def test_folded_text_fits_a_line_of_xml(raw: str) -> None:
    title = fold(raw)
    assert title == title.strip()
    assert len(title) <= LONGEST_TITLE
    assert not any(c < " " or "\ud800" <= c <= "\udfff" or c in "\x7f\ufffe\uffff" for c in title)
    assert fold(title) == title


TYPES = st.sampled_from(["text/html", "application/xhtml+xml", "text/xml", "image/svg+xml"])
MARKUP = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.sampled_from([b"<title>", b"</title>", b"<title", b"<svg>", b"<!--", b"<![CDATA[", b"&#0;", b"<?x", b"\0"]),
    )
).map(b"".join)


@given(MARKUP, st.text(max_size=20), TYPES)
def test_nothing_raises(body: bytes, content_type: str, mime_type: str) -> None:
    charset = decode_charset(body, content_type)
    assert len(title_of([body], charset, mime_type)) <= LONGEST_TITLE
    assert len(title_of([body], content_type, mime_type)) <= LONGEST_TITLE
