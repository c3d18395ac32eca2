"""What a search has to find, by an independent reading of pages: another HTML parser, and words of plain regular
expressions.

The pages are real: sites that Debian packages hold, in four states, of which each but the first lacks some pages, has
others back, and has changed some.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from selectolax.lexbor import LexborHTMLParser

from tests.support.realsites import RealSite

#: Elements whose text a browser does not show, and elements that are lines of their own.
_HIDDEN = (
    "script,style,noscript,template,head,title,iframe,object,noembed,noframes,audio,video,canvas,datalist,"
    "[hidden],[style*='display:none'],[style*='display: none'],[style*='visibility:hidden'],"
    "[style*='visibility: hidden']"
)
_LINES = (
    "address,article,aside,blockquote,br,caption,center,dd,details,dialog,div,dl,dt,fieldset,figcaption,figure,footer,"
    "form,h1,h2,h3,h4,h5,h6,header,hr,legend,li,main,menu,nav,ol,optgroup,option,p,pre,section,select,summary,table,tbody,"
    "td,textarea,tfoot,th,thead,tr,ul,button,img,input"
)
_WORD = re.compile(r"[^\W_]+")
#: Where the scripts after Arabic begin.
_OTHER_SCRIPTS = "\u0700"


def visible_words(page: bytes) -> list[str]:
    """The words of a page that a browser shows, in order, in lower case, without accents."""
    tree = LexborHTMLParser(page.decode("utf-8", "replace"))
    for node in tree.css(_HIDDEN):
        node.decompose()
    for node in tree.css(_LINES):
        node.insert_before("\n")
        node.insert_after("\n")
    text = tree.body.text(separator="") if tree.body else ""
    if text.isascii():
        return _WORD.findall(text.lower())
    # Accents of Latin, Greek, Cyrillic, Hebrew and Arabic letters go; marks of other scripts are part of their words.
    folded = unicodedata.normalize("NFKD", "".join(char for char in text if not _is_invisible(char))).casefold()
    plain = "".join(char for char in folded if char >= _OTHER_SCRIPTS or not _is_mark(char))
    shown = "".join(char if _is_of_word(char) else " " for char in unicodedata.normalize("NFC", plain))
    # Scripts without spaces begin a word of their own.
    return [word for run in shown.split() for _, chars in groupby(run, is_without_spaces) if (word := "".join(chars))]


@lru_cache(maxsize=100_000)
def _is_of_word(char: str) -> bool:
    return unicodedata.category(char)[0] in "LNM"


@lru_cache(maxsize=100_000)
def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" and char not in "\u200b\u200c"


@lru_cache(maxsize=100_000)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char) == "Mn"


@lru_cache(maxsize=100_000)
def is_without_spaces(word: str) -> bool:
    """Whether a word is of a script that has no spaces, in which any part of a word may be searched."""
    return any(unicodedata.name(char, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "HANGUL")) for char in word)


def states(site: RealSite, most: int, seed: int = 1) -> list[dict[str, bytes]]:
    """Four states of a site's HTML pages, path → body."""
    chance = random.Random(seed)
    pages = {
        name: (site.root / name).read_bytes()
        for name in [name for name in site.files() if name.endswith(".html")][:most]
        if (site.root / name).stat().st_size < 1 << 20
    }
    found = [pages]
    for number in range(1, 4):
        state = dict(found[-1])
        for name in chance.sample(sorted(state), len(state) // 20):
            del state[name]
        for name in chance.sample(sorted(state), len(state) // 10):
            other = pages[chance.choice(sorted(pages))]
            state[name] = other.replace(b"<body", b"<p>changed%d</p><body" % number, 1)
        for name in chance.sample(sorted(pages), len(pages) // 50):
            state[name] = pages[name]
        found.append(state)
    return found


class Truth:
    """The pages of a state by their words and pairs of words."""

    def __init__(self, state: Mapping[str, bytes], known: dict[bytes, list[str]]) -> None:
        self.words: dict[str, set[str]] = defaultdict(set)
        self._texts: dict[str, str] = {}
        for path, body in state.items():
            if body not in known:
                known[body] = visible_words(body)
            for word in known[body]:
                self.words[word].add(path)
            self._texts[path] = f" {' '.join(known[body])} "

    def with_word(self, word: str) -> set[str]:
        """The pages that have a word; without spaces between words, those that have it in one."""
        if not is_without_spaces(word):
            return self.words[word]
        return {path for each, paths in self.words.items() if word in each for path in paths}

    def with_phrase(self, phrase: Sequence[str]) -> set[str]:
        """The pages that have some words in this order."""
        wanted = f" {' '.join(phrase)} "
        return {path for path, text in self._texts.items() if wanted in text}

    def phrases(self, chance: random.Random, count: int) -> Iterator[list[str]]:
        """Phrases of two to four words that some page has."""
        paths = sorted(self._texts)
        for _ in range(count):
            words = self._texts[chance.choice(paths)].split()
            if len(words) > 5:
                at = chance.randrange(len(words) - 4)
                phrase = words[at : at + chance.randrange(2, 5)]
                if not any(map(is_without_spaces, phrase)):
                    yield phrase
