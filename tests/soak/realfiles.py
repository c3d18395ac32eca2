"""`python -m tests.soak.realfiles FOLDER`: PDF, DOCX and ODT files are found by words that independent readers see.

Each file below the folder becomes a document of an archive. Its words are those that pdftotext, docx2txt and odt2txt
print (Debian's poppler-utils, docx2txt, odt2txt); of each file some are searched, and have to find it.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from webarcfs.search.searching import Searcher, SearchQuestion

_READERS = {
    ".pdf": ("pdftotext", "{}", "-"),
    ".docx": ("docx2txt", "{}", "-"),
    ".odt": ("odt2txt", "--encoding=UTF-8", "{}"),
}
_WORD = re.compile(r"[^\W\d_]{4,30}")
#: Words of a file that are searched, and most bytes of a file.
_ASKED, _LARGEST = 10, 5 << 20


def main() -> int:
    """Compare; return 1 where fewer than 99 of 100 words find their file."""
    chance = random.Random(5)
    files: dict[str, tuple[Path, list[str]]] = {}
    pages: dict[str, bytes | None] = {}
    for number, path in enumerate(sorted(Path(sys.argv[1]).rglob("*"))):
        if path.suffix.lower() in _READERS and path.is_file() and 0 < path.stat().st_size < _LARGEST:
            words = sorted(set(_words(path)))
            if len(words) >= _ASKED:
                name = f"f{number}{path.suffix.lower()}"
                files[name] = (path, chance.sample(words, _ASKED))
                pages[name] = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        archive = archives.make_archive(Path(folder))
        archives.publish(archive, pages=pages)
        recover(archive)
        bring_in_step(archive)
        searcher = Searcher(archive)
        found = missed = 0
        for name, (path, words) in files.items():
            for word in words:
                places = searcher.places(SearchQuestion(words=f"text:{word}", exact=True, present=True, limit=10_000))
                if any(place.endswith(f"/{name}") for _, place in places):
                    found += 1
                else:
                    missed += 1
                    print(f"{path}: {word!r} does not find it")
    kinds = {kind: sum(name.endswith(kind) for name in files) for kind in _READERS}
    print(f"{len(files)} files {kinds}: {found} words found their file, {missed} did not")
    return int(not files or missed * 99 > found)


def _words(path: Path) -> list[str]:
    program, *arguments = _READERS[path.suffix.lower()]
    if shutil.which(program) is None:
        raise SystemExit(f"{program} is missing")
    command = [program, *(str(path) if each == "{}" else each for each in arguments)]
    text = subprocess.run(command, capture_output=True, check=False, timeout=240).stdout.decode("utf-8", "ignore")
    # A word that is divided at the end of a line is none of the document's.
    whole = re.sub(r"\w*[-\u00ad\u2010]\s*\n\s*\w*", " ", unicodedata.normalize("NFKC", text))
    return [word for word in _WORD.findall(whole) if word.isascii()]


if __name__ == "__main__":
    sys.exit(main())
