"""/Cr-12.2/: titles come out right whatever a page is encoded in, and whatever it says it is encoded in."""

import tracemalloc

import charset_normalizer
import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from webarcfs.content.text import (
    ENCODINGS,
    LONGEST_TITLE,
    decode_charset,
    decoder,
    encoding_of,
    fold,
    label_of,
    title_of,
)

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
        (page(FRENCH).encode("utf-16-be"), "text/html; charset=utf-16", "utf-16-le"),
        (page(FRENCH).encode("utf-16-le"), "text/html; charset=iso-8859-1", "cp1252"),
        (page(FRENCH).encode("utf-16-le"), "", "utf-16-le"),
        (page(FRENCH).encode("utf-16-le"), "text/html; charset=nonsense", "utf-16-le"),
        ('<?xml version="1.0"?><rss>é</rss>'.encode("utf-16-be"), "text/xml", "utf-16-be"),
        (page(RUSSIAN).encode("utf-32-le"), "", "utf-32-le"),
        # what is declared holds, also over bytes that are UTF-8
        (page("é").encode(), "text/html; charset=iso-8859-1", "cp1252"),
        (page("é", meta("windows-1252")).encode(), "", "cp1252"),
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
        (b"<p>plain", "text/html; charset=utf-16", "utf-16-le"),
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
        # a false charset is believed, as browsers do
        (page(FRENCH, meta("utf-8")).encode("cp1252"), "text/html; charset=utf-8", "utf-8"),
        (page(RUSSIAN, meta("utf-8")).encode("cp1251"), "", "utf-8"),
        (page(JAPANESE).encode("cp932"), "text/html; charset=euc-jp", "euc_jp"),
        (b"<p>\xc2\xa9 \xff 2010", "text/html; charset=utf-8", "utf-8"),
        (b'<meta charset="utf-8"><p>\xc2\xa9 \xff 2010', "", "utf-8"),
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


@given(st.binary(max_size=300), st.sampled_from(["utf-8", "cp1252", "cp1251", "koi8-r", "cp949", "euc_jp", "gb18030"]))
def test_a_known_charset_of_the_header_holds_for_any_bytes_without_marks(body: bytes, charset: str) -> None:
    plain = body.replace(b"\0", b"").lstrip(b"\xef\xfe\xff")
    assert decode_charset(plain, f"text/html; charset={charset}") == charset


@pytest.mark.parametrize(
    ("head", "content_type", "charset"),
    [
        # the header: as "parse a MIME type" reads it
        ("", 'text/html; charset="koi8-r"', "koi8-r"),
        ("", r'text/html; charset="koi8\-r"; x', "koi8-r"),
        ("", 'text/html;x="; charset=big5";CHARSET=koi8-r', "koi8-r"),
        ("", "text/html; charset=koi8-r; charset=big5", "koi8-r"),
        ("", "text/html; charset= koi8-r ", "koi8-r"),
        ("", "charset=koi8-r", "utf-8"),
        ("", "text/html; charset='koi8-r'", "utf-8"),
        # labels that Python does not know
        *(
            ("", f"text/html; charset={label}", name)
            for label, name in {
                "iso-8859-8-i": "iso8859-8-i",
                "logical": "iso8859-8-i",
                "visual": "iso8859-8",
                "x-cp1251": "cp1251",
                "x-euc-jp": "euc_jp",
                "x-gbk": "gb18030",
                "windows-949": "cp949",
                "x-mac-roman": "mac-roman",
                "iso88591": "cp1252",
                "latin1": "cp1252",
                "us-ascii": "cp1252",
                "iso_8859-1:1987": "cp1252",
                "iso88592": "iso8859-2",
                "unicode-1-1-utf-8": "utf-8",
                "unicode": "utf-16-le",
                "iso-8859-9": "cp1254",
                "x-user-defined": "cp1252",
                "x-sjis": "cp932",
                "tis-620": "cp874",
            }.items()
        ),
        # the document's own: the standard's prescan
        ('<meta charset="koi8-r"><meta charset="big5">', "", "koi8-r"),
        ("<META CHARSET=koi8-r>", "", "koi8-r"),
        ("<meta/charset='koi8-r'/>", "", "koi8-r"),
        ('<meta charset="nonsense"><meta charset="koi8-r">', "", "koi8-r"),
        ('<meta name=x content="text/html; charset=big5"><meta charset="koi8-r">', "", "koi8-r"),
        ("<meta content='text/html; charset = \"koi8-r\"' http-equiv=Content-Type>", "", "koi8-r"),
        ('<!-- <meta charset="big5"> --><meta charset="koi8-r">', "", "koi8-r"),
        ('<!--><meta charset="koi8-r">-->', "", "koi8-r"),
        ("<a title='<meta charset=big5>'><meta charset=koi8-r>", "", "koi8-r"),
        ("<? <meta charset=big5><meta charset=koi8-r>", "", "koi8-r"),
        ("<body><meta charset=koi8-r>", "", "koi8-r"),
        ("<metax charset=big5><!-- <meta charset=koi8-r>", "", "utf-8"),
        ("<meta charset=utf-16be>", "", "utf-8"),
        ("<meta charset=x-user-defined>", "", "cp1252"),
        ("<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r"),
        # each kind of document has its own declaration
        ('<?xml version="1.0" encoding="koi8-r"?><p/>', "", "koi8-r"),
        ("<?xml version='1.0' encoding='koi8-r'?><meta charset='big5'/>", "image/svg+xml", "koi8-r"),
        ('<?xml version="1.0" encoding="UTF-16"?><p/>', "text/xml", "utf-8"),
        ('@charset "koi8-r";a{}', "text/css", "koi8-r"),
        ('@charset "utf-16";a{}', "text/css; x=y", "utf-8"),
        ("a{}/* <meta charset=koi8-r> */", "text/css", "utf-8"),
        ("<meta charset=koi8-r>", "text/plain", "utf-8"),
        ("'<meta charset=koi8-r>'", "text/javascript", "utf-8"),
    ],
)
def test_what_declares_a_charset(head: str, content_type: str, charset: str) -> None:
    assert decode_charset(head.encode(), content_type) == charset


@pytest.mark.parametrize(
    ("charset", "data", "decoded"),
    [
        ("cp1252", b"a\x81\x8d\x9d\x80", "a\x81\x8d\x9d€"),  # the standard leaves no byte of it out
        ("cp1253", b"\x81\xaa", "\x81\ufffd"),
        ("utf-8", b"\xc2\xa9 \xff 2010", "© \ufffd 2010"),
        ("gb18030", b"\x80\xff", "€\ufffd"),
        ("cp932", b"\x81<b>", "\ufffd<b>"),  # a broken pair hides no markup
        ("iso8859-8-i", b"\xe0", "א"),
        ("zlib", b"\xe9", "é"),
    ],
)
def test_what_does_not_decode_is_replaced_as_browsers_do(charset: str, data: bytes, decoded: str) -> None:
    assert decoder(charset).decode(data, final=True) == decoded


@pytest.mark.parametrize("charset", sorted(ENCODINGS - {"utf-16-le", "utf-16-be"}))
def test_each_encoding_has_a_label_that_means_it(charset: str) -> None:
    label = label_of(charset)
    assert encoding_of(label) == charset or label in ("windows-1252", "big5")
    assert decoder(charset).decode(b"a", final=True) == "a"


def test_each_label_of_the_standard_means_an_encoding() -> None:
    unknown = {label for label, name in LABELS.items() if encoding_of(label) is None}
    assert unknown == {"replacement", "iso-2022-cn", "iso-2022-cn-ext"}  # browsers show nothing of these


def test_the_prescan_takes_linear_time() -> None:
    for hostile in (b"<!--", b"<meta ", b"<a '", b"<meta content=charset", b"<meta charset='", b"<?xml encoding"):
        decode_charset(hostile * 100_000, "")


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
