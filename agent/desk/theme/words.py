"""What states, steps, events, roles and rights are called on pages: msgids, and the signs beside them. Pure.

A snapshot is called a snapshot here, whatever the code calls its record, job or capture.

What the fields of a record and the archive's settings are for, in English and German. Pure.

The English help of a field names the German term of the source, by which archivists know it.
"""

from __future__ import annotations

from collections.abc import Callable

from webarcfs.archive.catalogue.record import BY_NUMBER, Field, State
from webarcfs.archive.catalogue.workflow import Step

# == words, pure ======================================================================================================


def msgid(text: str) -> str:
    """Return a text as it is, and mark it as one that is translated where it is shown."""
    return text


#: State → its word, and a sign that tells it apart without colour.
STATES: dict[str, tuple[str, str]] = {
    State.OPEN: (msgid("not fetched yet"), "○"),
    State.CANCELLED: (msgid("cancelled"), "⊘"),
    State.EMPTY: (msgid("empty"), "∅"),
    State.CAPTURED: (msgid("fetched"), "◔"),
    State.COUNTED: (msgid("counted"), "◑"),
    State.CONVERTED: (msgid("converted"), "◑"),
    State.INDEXED: (msgid("indexed"), "◕"),
    State.CHECKED: (msgid("checked"), "◕"),
    State.RELEASED: (msgid("released"), "●"),
    State.REJECTED: (msgid("rejected"), "✕"),
    State.DISCARDED: (msgid("discarded"), "⌫"),
}
#: Step → the words of its button.
STEPS: dict[str, str] = {
    Step.CANCEL: msgid("Cancel"),
    Step.CAPTURE: msgid("Fetch"),
    Step.COUNT: msgid("Count"),
    Step.CONVERT: msgid("Convert"),
    Step.INDEX: msgid("Index it"),
    Step.CHECK: msgid("Check"),
    Step.RELEASE: msgid("Release it"),
    Step.REJECT: msgid("Reject"),
    Step.REOPEN: msgid("Take the rejection back"),
    Step.WITHDRAW: msgid("Withdraw"),
    Step.DISCARD: msgid("Discard it for everybody"),
    Step.RESTORE: msgid("Restore it"),
    Step.BACKUP: msgid("Back up"),
    Step.MEASURE: msgid("Record a measure"),
}
#: Event of a record → its words.
EVENTS: dict[str, str] = {
    "new": msgid("entered"), "cancelled": msgid("cancelled"), "begun": msgid("fetching began"),
    "captured": msgid("fetched"),
    "counted": msgid("counted"), "converted": msgid("converted"), "indexed": msgid("indexed"),
    "checking": msgid("checks ran, somebody has to look"), "looked": msgid("looked at"),
    "checked": msgid("checked"), "released": msgid("released"), "rejected": msgid("rejected"),
    "reopened": msgid("rejection taken back"), "withdrawn": msgid("withdrawn"),
    "discarded": msgid("discarded"), "restored": msgid("restored"), "backup": msgid("backed up"),
    "measure": msgid("measure"), "edited": msgid("description changed"), "interrupted": msgid("interrupted"),
    "resumed": msgid("resumed"), "attached": msgid("file attached"), "replaced": msgid("file replaced"),
    "noted": msgid("note to a file changed"), "detached": msgid("file removed"),
}  # fmt: skip
#: Word of `release` in settings → what it means.
RELEASES: dict[str, str] = {
    "automatic": msgid("as soon as it is published"),
    "when-checked": msgid("by itself, if it is complete and all checks passed"),
    "by-hand": msgid("when somebody releases it"),
}
ROLES: dict[str, str] = {
    "archivist": msgid("archivist"), "administrator": msgid("administrator"), "reviewer": msgid("reviewer"),
    "curator": msgid("curator"),
}  # fmt: skip
#: Phase of a job, or why it is held → its words.
PHASES: dict[str, str] = {
    "waiting": msgid("waits"), "collecting": msgid("fetches"), "converting": msgid("publishes"),
    "archived": msgid("archived"), "failed": msgid("failed"), "interrupted": msgid("interrupted"),
    "paused": msgid("paused"), "deadline": msgid("its time is over"),
}  # fmt: skip
#: Order to a job → its words, which take a value behind them.
ORDERS: dict[str, str] = {
    "pause": msgid("Pause"), "resume": msgid("Go on"), "stop": msgid("Stop and publish"), "discard": msgid("Discard"),
    "deadline": msgid("May fetch until"), "exclude": msgid("Leave out a server"),
}  # fmt: skip
#: State of a URL in a job → what its number is called.
URLS: dict[str, str] = {
    "waiting": msgid("waiting"), "fetching": msgid("being asked for"), "done": msgid("done"), "failed": msgid("failed"),
    "refused": msgid("refused"),
}  # fmt: skip


def state(word: str) -> tuple[str, str]:
    """Return the words and the sign of a state."""
    return STATES.get(word, (word, "?"))


# == help texts, pure =================================================================================================


ABOUT = msgid("Title and access")
#: Number of a field → what it is for, in English and German.
_HELP: dict[int, tuple[str, str]] = {
    1: ("Names the snapshot for good.", "Benennt die Momentaufnahme auf Dauer."),
    2: ("The mark by which the archive finds the fonds, as 5100.", "Das Zeichen des Bestands im Archiv, etwa 5100."),
    3: ("The office that answers for the site.", "Die Stelle, die für die Seiten verantwortlich ist."),
    4: ("The project that the site belongs to, as Internet or Intranet.",
        "Das Projekt, zu dem die Seiten gehören, etwa Internet oder Intranet."),
    5: ("Regular, or why it was fetched beside the schedule.",
        "Turnus, oder warum außerhalb des Turnus heruntergeladen wurde."),
    6: ("Whatever others should know of this snapshot.", "Was andere über diese Momentaufnahme wissen sollten."),
    7: ("When its pages were fetched, CET.", "Wann die Seiten geholt wurden, MEZ."),
    8: ("Who had it fetched.", "Wer das Herunterladen veranlasst hat."),
    9: ("What the server said of itself.", "Was der Server über sich selbst sagte."),
    10: ("The repositories that hold its pages.", "Die Repositorien, die ihre Seiten enthalten."),
    11: ("The program that fetched it, with its version.", "Das Programm, das heruntergeladen hat, mit Version."),
    12: ("The domain that was wanted.", "Die Domain, die gewünscht war."),
    13: ("Hosts and folders that were left out, with the reason.",
         "Rechner und Verzeichnisse, die ausgelassen wurden, mit dem Grund."),
    14: ("How many links away from a start page a page could be.",
         "Wie viele Links eine Seite von einer Startseite entfernt sein durfte."),
    15: ("How far links to other sites were followed.", "Wie weit Links zu anderen Angeboten gefolgt wurde."),
    16: ("Files of these kinds were not fetched, as exe, zip.",
         "Dateien dieser Art wurden nicht geholt, etwa exe, zip."),
    17: ("How fast the crawler was allowed to fetch.", "Wie schnell der Crawler holen durfte."),
    18: ("How many servers were asked at a time.", "Wie viele Server zugleich gefragt wurden."),
    19: ("How the crawler was called, word for word.", "Wie der Crawler aufgerufen wurde, wörtlich."),
    20: ("What else was particular about the crawler.", "Was am Crawler sonst noch besonders war."),
    21: ("How far it is.", "Wie weit sie ist."),
    22: ("Bytes of all its files.", "Bytes aller ihrer Dateien."),
    23: ("How many files it has.", "Wie viele Dateien sie hat."),
    24: ("How many folders it has.", "Wie viele Ordner sie hat."),
    25: ("How many files have which extension.", "Wie viele Dateien welche Erweiterung haben."),
    26: ("By which programs such files were made then.", "Mit welchen Programmen solche Dateien damals entstanden."),
    27: ("With which programs they can be read today.", "Mit welchen Programmen sie heute lesbar sind."),
    28: ("Extensions that the snapshot before did not have.", "Erweiterungen, die die vorige noch nicht hatte."),
    29: ("How long fetching took.", "Wie lange das Herunterladen dauerte."),
    30: ("What went wrong while it was fetched.", "Was beim Herunterladen misslang."),
    31: ("When the untouched form was safe.", "Wann die unberührte Form gesichert war."),
    32: ("Who had the copy made.", "Wer die Kopie veranlasst hat."),
    33: ("Where the untouched form lies.", "Wo die unberührte Form liegt."),
    34: ("Whether its files were counted.", "Ob ihre Dateien gezählt wurden."),
    35: ("When pages were converted.", "Wann Seiten konvertiert wurden."),
    36: ("Who had them converted.", "Wer die Konvertierung veranlasst hat."),
    37: ("Bytes with converted pages in place of the others.", "Bytes mit konvertierten statt der übrigen Seiten."),
    38: ("How long the conversion took.", "Wie lange die Konvertierung dauerte."),
    39: ("All links of all pages.", "Alle Links aller Seiten."),
    40: ("Links that lead to a notice, since their target is not archived.",
         "Links, die zu einem Hinweis führen, weil ihr Ziel nicht archiviert ist."),
    41: ("The same, each target once.", "Dieselben, jedes Ziel einmal."),
    42: ("Links that stay within the snapshot.", "Links, die in der Momentaufnahme bleiben."),
    43: ("What is particular about its links.", "Was an ihren Links besonders ist."),
    44: ("Pages that are error messages of the server.", "Seiten, die Fehlermeldungen des Servers sind."),
    45: ("What is particular about error pages.", "Was an Fehlerseiten besonders ist."),
    46: ("Links and forms of the site's own search, which cannot work here.",
         "Links und Formulare der Suche der Seiten, die hier nicht gehen kann."),
    47: ("What is particular about them.", "Was an ihnen besonders ist."),
    48: ("The program that converted, with its version.", "Das Programm, das konvertiert hat, mit Version."),
    49: ("Its settings, as they were used.", "Seine Einstellungen, wie sie benutzt wurden."),
    50: ("Pages that have an XHTML form.", "Seiten, die eine XHTML-Form haben."),
    51: ("Pages for which none could be made.", "Seiten, für die keine gemacht werden konnte."),
    52: ("What went wrong in the conversion.", "Was bei der Konvertierung misslang."),
    53: ("When its words were indexed.", "Wann ihre Wörter indexiert wurden."),
    54: ("Who had them indexed.", "Wer die Indexierung veranlasst hat."),
    55: ("How long indexing took.", "Wie lange die Indexierung dauerte."),
    56: ("The program that indexed, with its version.", "Das Programm, das indexiert hat, mit Version."),
    57: ("Its settings, as they were used.", "Seine Einstellungen, wie sie benutzt wurden."),
    58: ("How many different words the index has.", "Wie viele verschiedene Wörter der Index hat."),
    59: ("What went wrong in indexing.", "Was bei der Indexierung misslang."),
    60: ("When readers got it.", "Wann Benutzer sie bekamen."),
    61: ("Who released it.", "Wer sie freigegeben hat."),
    62: ("Pages that were looked at, and what was found.", "Seiten, die angesehen wurden, und was sich zeigte."),
    63: ("What else was checked.", "Was sonst geprüft wurde."),
    64: ("Why it was released, rejected or withdrawn.", "Warum sie freigegeben, verworfen oder zurückgenommen wurde."),
    65: ("When it was backed up.", "Wann sie gesichert wurde."),
    66: ("Who had it backed up.", "Wer die Sicherung veranlasst hat."),
    67: ("How long the backup took.", "Wie lange die Sicherung dauerte."),
    68: ("Bytes that the backup added.", "Bytes, die die Sicherung hinzufügte."),
    69: ("The program that made the backup.", "Das Programm, das die Sicherung gemacht hat."),
    70: ("How it was called.", "Wie es aufgerufen wurde."),
    71: ("On what the backup lies, as a disk or a tape.", "Worauf die Sicherung liegt, etwa Platte oder Band."),
    72: ("Where that is found: a path, or its mark on the shelf.",
         "Wo das zu finden ist: ein Pfad oder die Signatur im Regal."),
    73: ("What is particular about the backup.", "Was an der Sicherung besonders ist."),
    74: ("When the measure was taken.", "Wann die Maßnahme stattfand."),
    75: ("Who took it.", "Wer sie vorgenommen hat."),
    76: ("In a word, as migration or conversion.", "In einem Wort, etwa Migration oder Konvertierung."),
    77: ("What was done, to which files.", "Was gemacht wurde, an welchen Dateien."),
    78: ("Program and version.", "Programm und Version."),
    79: ("How the program was set.", "Wie das Programm eingestellt war."),
    80: ("Bytes of the snapshot afterwards; empty: as counted.", "Bytes der Momentaufnahme danach; leer: wie gezählt."),
    81: ("Why it was taken, and what went wrong.", "Warum sie stattfand, und was misslang."),
}  # fmt: skip
#: Name of what is no field of the 81 → label and help (msgids).
_ABOUT: dict[str, tuple[str, str]] = {
    "title": (msgid("Title"), msgid("How lists and readers call the snapshot.")),
    "language": (msgid("Language"), msgid("Of most of its pages, as de or en.")),
    "access": (msgid("Access statement"), msgid("Who may see it, in words for readers.")),
}


def of_field(field: Field, language: str) -> tuple[str, str]:
    """Return label and help of a field in a language."""
    english, german = _HELP[field.number]
    if language == "de":
        return field.de, german
    return field.en[:1].upper() + field.en[1:], f"{english} ({field.de})"


def of_about(name: str, text: Callable[[str], str]) -> tuple[str, str]:
    """Return label and help of title, language and access statement."""
    label, help_text = _ABOUT[name]
    return text(label), text(help_text)


def label_of_setting(key: str, text: Callable[[str], str]) -> str:
    """Return what a setting is called: its key, as people read it, since files and commands name it so."""
    return text(key.replace("_", " ").capitalize())


def complete() -> bool:
    """Return whether each field has its help, and nothing else has."""
    return _HELP.keys() == BY_NUMBER.keys()
