"""What a script imports, and which names of the window it declares: a scanner of JavaScript. Pure.

The replay of module scripts needs a few places of a source, and needs them for each answer: a parser that builds a tree
holds too much memory for that. `scan` passes once over the source. A compiled pattern skips what cannot matter (most
names, numbers, operators, strings) and stops at the rest: brackets, templates, slashes, and some words. What a slash or
a brace means follows from the token before it and from the brackets that are open (ECMA-262, "Lexical Grammar": a slash
divides after an operand, and begins a regular expression or a comment elsewhere).

A source with faults is scanned as well as it can be: `is_whole` is False then, and everything that was found is given.
Time is linear in the length of the source. Memory is that of the open brackets and of what was found, which both have
bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from webarcfs.archive.model.errors import TookTooLong

#: Names that are the window's own, and that replay replaces.
GLOBALS: Final = frozenset({"window", "self", "document", "location", "top", "parent", "frames", "opener"})
#: Most brackets that may be open at a time, and most references and assignments of a source. Beyond, a scan ends.
NESTED_AT_MOST: Final = 100_000
FOUND_AT_MOST: Final = 200_000
#: After so many tokens `goes_on` is asked.
_TOKENS_BETWEEN_QUESTIONS: Final = 4_096


class SpecifierKind(Enum):
    """What refers to a module, or to the place of the script's own."""

    STATIC = auto()
    DYNAMIC = auto()
    META_URL = auto()


@dataclass(frozen=True, slots=True)
class ModuleReference:
    """A place in a source that names a module; offsets are characters.

    STATIC: the string literal of an `import` or `export … from`, with its quotes; `specifier` is its value.
    DYNAMIC: the first argument of `import()`, without blanks and comments round it; `specifier` is its value if it is
    one string literal, or one template without substitution, else None.
    META_URL: `import.meta.url`; `specifier` is None.
    """

    kind: SpecifierKind
    start: int
    end: int
    specifier: str | None


@dataclass(frozen=True, slots=True)
class ScannedScript:
    """What `scan` finds in a source.

    `references` are in the order of the source. `declared` are those of `GLOBALS` that the top level declares: by
    imports, `let`, `const`, `class`, `function`, and by `var`, which may stand in a block there. `location_assignments`
    are the offsets after the name in `location = …`; there are none where anything in the source binds that name.
    `is_module`: it has an `import` or `export` statement, or `import.meta`. `is_whole` is False where the source ends
    in a string, template, comment or bracket, where its brackets do not match, or where it passes a bound.
    """

    references: tuple[ModuleReference, ...]
    declared: frozenset[str]
    location_assignments: tuple[int, ...]
    is_module: bool
    is_whole: bool


def scan(source: str, *, goes_on: Callable[[], bool] = lambda: True, is_module: bool = False) -> ScannedScript:
    """Return what a script imports and declares. `is_module`: it is known to be a module, and is read as one.

    Raises TookTooLong when `goes_on` returns False.
    """
    script = _Scanner(source, goes_on, has_html_comments=not is_module)
    script.run()
    if script.is_module and script.saw_html_comment:
        # Only classic scripts have these comments, and whether one is a module may show after them.
        script = _Scanner(source, goes_on, has_html_comments=False)
        script.run()
    return script.result()


# == patterns =========================================================================================================

# Repetitions are possessive: none is tried twice, and the matcher keeps no state for them.
_NAME_CHARACTER = r"(?:[\w$\u200c\u200d]|[^\x00-\x7f\s\ufeff])"
_NO_MORE = r"(?![\w$\\])"
#: Names and keywords that matter.
_WORDS = (
    ("c", "(?:ase|atch|lass|onst)"),
    ("d", "ocument"),
    ("e", "xport"),
    ("f", "(?:or|rames|unction)"),
    ("i", "(?:f|mport)"),
    ("l", "(?:et|ocation)"),
    ("o", "pener"),
    ("p", "arent"),
    ("s", "(?:elf|witch)"),
    ("t", "op"),
    ("v", "ar"),
    ("w", "(?:hile|indow|ith)"),
)
_STRING = (
    r'"[^"\\\n\r]*+(?:\\(?:\r\n|[\s\S])[^"\\\n\r]*+)*+"'
    r"|'[^'\\\n\r]*+(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*+)*+'"
)


def _token_pattern(stops: str = "") -> re.Pattern[str]:
    """Return the pattern of a token that matters; what matches `stops` matters, too.

    Each alternative begins with a literal or a set, and a word's look behind comes after its first letter: so the
    search can leap to the next character that begins one.
    """
    words = "|".join(rf"{first}(?<![\w$]{first}){rest}{_NO_MORE}" for first, rest in _WORDS)
    return re.compile(rf"[()\[\]{{}}`/\\]|{_STRING}|\?(?<!\?\?)(?:(?![?.])|(?=\.[0-9]))|<!--|-->|{words}{stops}|[\"']")


_TOKEN: Final = _token_pattern()
#: Where the end of a statement, or a comma, matters: in a list of declarators, and in the arguments of `import()`.
_DETAILED_TOKEN: Final = _token_pattern(r"|[;,]|[\n\r\u2028\u2029][\s\ufeff]*+")

_TRIVIA = r"(?:[\s\ufeff]++|//[^\n\r\u2028\u2029]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_SKIP_TRIVIA: Final = re.compile(_TRIVIA)
_IDENTIFIER = rf"(?:{_NAME_CHARACTER}|\\u[0-9a-fA-F]{{4}}|\\u\{{[0-9a-fA-F]{{1,6}}\}})++"
_WHOLE_IDENTIFIER: Final = re.compile(_IDENTIFIER)
_CLAUSE_TOKEN: Final = re.compile(rf"{_TRIVIA}((?P<name>{_IDENTIFIER})|(?P<text>{_STRING})|[{{}},*])")
_META: Final = re.compile(rf"{_TRIVIA}\.{_TRIVIA}(meta){_NO_MORE}")
_URL: Final = re.compile(rf"{_TRIVIA}(?:\?\.|\.){_TRIVIA}url{_NO_MORE}")
_TEMPLATE_TEXT: Final = re.compile(r"(?:[^`\\$]++|\\[\s\S]|\$(?!\{))*+")
_PLAIN_TEMPLATE: Final = re.compile(r"`((?:[^`\\$]++|\\[\s\S]|\$(?!\{))*+)`")
_WHOLE_STRING: Final = re.compile(_STRING)
#: A class may hold a slash. Nested classes (flag `v`) are no matter of the lexical grammar: see RegularExpressionClass.
_REGULAR_EXPRESSION: Final = re.compile(
    r"/(?:[^/\\\[\n\r\u2028\u2029]++|\\[^\n\r\u2028\u2029]|\[(?:[^\]\\\n\r\u2028\u2029]++|\\[^\n\r\u2028\u2029])*+\])++/"
    rf"{_NAME_CHARACTER}*+"
)
_LINE_END: Final = re.compile(r"[\n\r\u2028\u2029]")
_STRING_LINE_END: Final = re.compile(r"[\n\r]")
_ESCAPE: Final = re.compile(
    r"\\(?:u\{(?P<point>0*[0-9a-fA-F]{1,6})\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<line>\r\n|[\n\r\u2028\u2029])|(?P<letter>[\s\S]))"
)
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_BLANK: Final = frozenset("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff") | {
    chr(code) for code in range(0x2000, 0x200B)
}
_ASCII_PART: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$")


def _is_part(character: str) -> bool:
    """Return whether a character may be part of a name or number."""
    return character in _ASCII_PART or (character > "\x7f" and character not in _BLANK)


def _unescaped(text: str) -> str:
    """Return what the inside of a literal, or a name with escapes, stands for."""

    def character(match: re.Match[str]) -> str:
        match match.lastgroup:
            case "point":
                code = int(match["point"], 16)
                return chr(code) if code <= 0x10FFFF else "\ufffd"
            case "unit" | "byte":
                return chr(int(match[match.lastgroup], 16))
            case "octal":
                return chr(int(match["octal"], 8))
            case "line":
                return ""
            case _:
                return _LETTERS.get(match["letter"], match["letter"])

    if "\\" in text:
        text = _ESCAPE.sub(character, text)
        text = _SURROGATES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return text


def _value_of(argument: str) -> str | None:
    """Return the value of an argument that is one literal, else None."""
    if _WHOLE_STRING.fullmatch(argument):
        return _unescaped(argument[1:-1])
    if template := _PLAIN_TEMPLATE.fullmatch(argument):
        return _unescaped(template[1].replace("\r\n", "\n").replace("\r", "\n"))
    return None


# == brackets =========================================================================================================


class _Bracket(Enum):
    """What an open bracket is."""

    SCRIPT = auto()  # none: the source itself
    BLOCK = auto()
    SWITCH = auto()
    FUNCTION = auto()
    CLASS = auto()
    OBJECT = auto()
    SUBSTITUTION = auto()
    ARRAY = auto()
    INDEX = auto()
    GROUP = auto()  # or the arguments of a call, or the parameters of an arrow function or a method
    PARAMETERS = auto()
    CATCH = auto()
    HEAD = auto()  # of if, for, while, with
    SWITCH_HEAD = auto()
    IMPORT = auto()


_SCRIPT: Final = _Bracket.SCRIPT
_BLOCK: Final = _Bracket.BLOCK
_SWITCH: Final = _Bracket.SWITCH
_FUNCTION: Final = _Bracket.FUNCTION
_CLASS: Final = _Bracket.CLASS
_OBJECT: Final = _Bracket.OBJECT
_SUBSTITUTION: Final = _Bracket.SUBSTITUTION
_ARRAY: Final = _Bracket.ARRAY
_INDEX: Final = _Bracket.INDEX
_GROUP: Final = _Bracket.GROUP
_PARAMETERS: Final = _Bracket.PARAMETERS
_CATCH: Final = _Bracket.CATCH
_HEAD: Final = _Bracket.HEAD
_SWITCH_HEAD: Final = _Bracket.SWITCH_HEAD
_IMPORT: Final = _Bracket.IMPORT

_STATEMENTS: Final = frozenset({_SCRIPT, _BLOCK, _SWITCH, _FUNCTION})
_LISTS: Final = frozenset({_ARRAY, _GROUP, _PARAMETERS, _CATCH})


class _Binding(Enum):
    """What the names in a pattern are."""

    NONE = auto()  # no new names, as far as is known
    INNER = auto()  # names of a function, block or parameter
    TOP = auto()  # names of the script's top level


_NONE: Final = _Binding.NONE
_INNER: Final = _Binding.INNER
_TOP: Final = _Binding.TOP


class _Frame:
    """An open bracket and what the scan knows of the inside."""

    __slots__ = (
        "assignments",
        "binding",
        "classes",
        "closer",
        "declares",
        "has_location",
        "in_function",
        "is_expression",
        "is_pending_expression",
        "is_target",
        "kind",
        "pending",
        "reference",
        "saw_question",
        "start",
        "stops",
    )

    def __init__(self, kind: _Bracket, closer: str, *, in_function: bool, is_expression: bool = True) -> None:
        self.kind = kind
        self.closer = closer
        #: Whether a `var` inside is a function's.
        self.in_function = in_function
        #: Whether it is an operand once it is closed. That of PARAMETERS is the function's.
        self.is_expression = is_expression
        #: What the next parenthesis is, by the keyword before it.
        self.pending: _Bracket | None = None
        self.is_pending_expression = False
        #: Of each class whose body has not begun: whether it is an expression.
        self.classes: list[bool] | None = None
        #: What the declarators bind while a list of them goes on.
        self.declares = _NONE
        #: What the names of a pattern bind.
        self.binding = _NONE
        #: Whether it may turn out to be part of the pattern of the frame outside.
        self.is_target = False
        #: Whether `location` is where a pattern would bind it; and the assignments that may be defaults of a pattern.
        self.has_location = False
        self.assignments: list[int] | None = None
        #: Whether the last `?` came after the last `case`.
        self.saw_question = False
        #: Of `import()`: its number in the references, until the first argument has ended; and where that begins.
        self.reference = -1
        self.start = 0
        #: Whether the ends of statements, and commas, matter.
        self.stops = False


# == the scan =========================================================================================================

#: Stands for any operand: a name, a number, a property.
_OPERAND: Final = "operand"
#: After these words comes an expression, so a slash begins a regular expression and a brace an object.
_OPERATOR_WORDS: Final = frozenset(
    {"return", "typeof", "case", "in", "instanceof", "new", "void", "delete", "throw", "yield", "await", "of"}
    | {"extends", "default"}
)
_STATEMENT_WORDS: Final = frozenset({"else", "do"})
_DECLARING: Final = frozenset({"var", "let", "const"})
_OPERANDS: Final = frozenset({_OPERAND, "]", '"', "'", "`", "++", "--"})
_PROPERTY: Final = frozenset({".", "?.", "#"})
_LIST_TARGETS: Final = frozenset({"(", "[", ",", "..."})
_OBJECT_TARGETS: Final = frozenset({"{", ",", ":", "..."})
_NESTED_OBJECT_TARGETS: Final = frozenset({":", "..."})
_MEMBER_ENDS: Final = frozenset({"{", "}", ";"})
_PREFIXES: Final = frozenset({"get", "set", "static"})


class _Scanner:
    """One scan. `position` is what it goes on from; `mark` the end of the last token that it stopped at, `last`."""

    def __init__(self, source: str, goes_on: Callable[[], bool], *, has_html_comments: bool) -> None:
        self.source = source
        self.goes_on = goes_on
        self.has_html_comments = has_html_comments
        self.position = 0
        self.mark = 0
        self.last = ""
        #: Where the last token ended, if a comment that ends at `comment_end` follows.
        self.comment_end = -1
        self.before_comment = 0
        #: Where the token that `_before` returned begins.
        self.token_start = 0
        self.frame = _Frame(_SCRIPT, "", in_function=False)
        self.stack: list[_Frame] = []
        self.closed = self.frame
        self.references: list[ModuleReference | None] = []
        self.declared: set[str] = set()
        self.assignments: list[int] = []
        self.binds_location = False
        self.is_module = False
        self.is_whole = True
        self.saw_html_comment = False
        #: Up to here a slash divides, since no regular expression ended on the line.
        self.no_expression_before = 0

    def run(self) -> None:
        """Scan the source. Raises TookTooLong."""
        source, handlers = self.source, _HANDLERS
        find, find_detailed = _TOKEN.search, _DETAILED_TOKEN.search
        if source.startswith("#!"):
            self._comment_to(0, self._line_end(0))
        left = _TOKENS_BETWEEN_QUESTIONS
        while match := (find_detailed if self.frame.stops else find)(source, self.position):
            start, end = match.span()
            handlers[source[start]](self, start, end)
            left -= 1
            if left == 0:
                left = _TOKENS_BETWEEN_QUESTIONS
                if not self.goes_on():
                    raise TookTooLong("the script takes too long to scan")
                if len(self.references) + len(self.assignments) > FOUND_AT_MOST:
                    self._give_up()
        if self.stack:
            self.is_whole = False

    def result(self) -> ScannedScript:
        """Return what was found."""
        return ScannedScript(
            tuple(reference for reference in self.references if reference is not None),
            frozenset(self.declared),
            () if self.binds_location else tuple(sorted(self.assignments)),
            self.is_module,
            self.is_whole,
        )

    def _give_up(self) -> None:
        """End the scan here."""
        self.is_whole = False
        self.position = len(self.source)

    # -- what is before and after ------------------------------------------------------------------------------------

    def _before(self, position: int) -> str:
        """Return the token before a position: a word, a punctuator's last character or so, `_OPERAND`, "" for none."""
        source, mark = self.source, self.mark
        index = position - 1
        while index >= mark and source[index] in _BLANK:
            index -= 1
        if index < mark:
            return self.last
        character = source[index]
        if not _is_part(character):
            self.token_start = index
            return self._punctuator(index)
        end = index + 1
        while index >= mark and _is_part(source[index]):
            index -= 1
        self.token_start = index + 1
        word = source[index + 1 : end]
        while index >= mark and source[index] in _BLANK:
            index -= 1
        if index < mark:
            is_property = self.last in _PROPERTY
        else:
            character = source[index]
            is_property = character == "#" or (character == "." and self._punctuator(index) != "...")
        return _OPERAND if is_property else word

    def _punctuator(self, index: int) -> str:
        """Return the punctuator that ends at an index, as far as it makes a difference."""
        source, mark = self.source, self.mark
        character = source[index]
        if character == ">" and index > mark and source[index - 1] == "=":
            return "=>"
        if character in "+-" and index > mark and source[index - 1] == character:
            self.token_start = index - 1
            return character * 2
        if character == ".":
            if index > mark + 1 and source[index - 2 : index] == "..":
                return "..."
            if self._ends_number(index):
                return _OPERAND
        return character

    def _ends_number(self, point: int) -> bool:
        """Return whether a point is the last character of a number, as in `1.`, and asks for no property."""
        source, mark = self.source, self.mark
        index = point - 1
        while index >= mark and source[index] in "0123456789_":
            index -= 1
        if index == point - 1:
            return False
        return index < mark or not (_is_part(source[index]) or source[index] == ".")

    def _end_before(self, position: int) -> int:
        """Return where the token before a position ends."""
        source, mark = self.source, self.mark
        while position > mark and source[position - 1] in _BLANK:
            position -= 1
        if position > mark:
            return position
        return self.before_comment if self.comment_end == mark else mark

    def _is_on_new_line(self, position: int) -> bool:
        """Return whether a line ends between the token before a position and that position."""
        return _LINE_END.search(self.source, self._end_before(position), position) is not None

    def _next(self, position: int) -> int:
        """Return where the next token begins."""
        match = _SKIP_TRIVIA.match(self.source, position)
        return position if match is None else match.end()

    def _is_assigned(self, position: int) -> bool:
        """Return whether a plain `=` stands at a position."""
        source = self.source
        return source.startswith("=", position) and source[position + 1 : position + 2] not in ("=", ">")

    def _line_end(self, position: int) -> int:
        match = _LINE_END.search(self.source, position)
        return len(self.source) if match is None else match.start()

    def _ends_operand(self, before: str) -> bool:
        """Return whether the token before is the end of an operand, so that a slash divides."""
        if before in (")", "}"):
            return self.closed.is_expression
        if before in _OPERANDS:
            return True
        if not before or not _is_part(before[0]):
            return False
        if before == "of":
            return self.frame.kind is not _HEAD
        return before not in _OPERATOR_WORDS and before not in _STATEMENT_WORDS

    def _is_block_after_colon(self) -> bool:
        """Return whether the colon that `_before` returned ends a label or a case; else it is of a ternary."""
        colon = self.token_start
        before = self._before(colon)
        if before == "default":
            return True
        if before and before != _OPERAND and _is_part(before[0]):
            first = self._before(self.token_start) if self.token_start >= self.mark else self.last
            if first in ("", ";", "{", "}", ")", "else", "do"):
                return True
        return not self.frame.saw_question

    def _begins_statement(self, before: str) -> bool:
        """Return whether a statement may begin after a token, if need be by the insertion of a semicolon."""
        if before == "{":
            return self.frame.kind in _STATEMENTS
        if before == ":":
            return self.frame.kind in _STATEMENTS and self._is_block_after_colon()
        if before in ("", ";", ")", "}", "default") or before in _OPERANDS:
            return self.frame.kind in _STATEMENTS
        return _is_part(before[0]) and before not in _OPERATOR_WORDS and self.frame.kind in _STATEMENTS

    def _is_operator(self, before: str) -> bool:
        """Return whether an operand must follow a token, in the body of a class."""
        if not before or before in _MEMBER_ENDS or before in (")", "]") or before in _OPERANDS:
            return False
        return before in _OPERATOR_WORDS or not _is_part(before[0])

    def _is_key(self, before: str) -> bool:
        """Return whether a word after a token is the name of a property or method."""
        if before in _PROPERTY:
            return True
        kind = self.frame.kind
        if kind is _OBJECT:
            if before in ("*", "async"):
                return self._before(self.token_start) in ("{", ",", "async")
            return before in ("{", ",") or before in _PREFIXES
        if kind is _CLASS:
            if before in ("*", "async"):
                first = self._before(self.token_start)
                return first in _MEMBER_ENDS or first in ("static", "async") or (before == "async" and first != "=")
            return not self._is_operator(before)
        return False

    # -- literals, comments, slashes ---------------------------------------------------------------------------------

    def _take(self, end: int, last: str) -> None:
        """Go on after a token."""
        self.position = self.mark = end
        self.last = last

    def _comment_to(self, start: int, end: int) -> None:
        """Go on after a comment: the token before it stays the last."""
        significant = self._end_before(start)
        self.last = self._before(start)
        self.before_comment = significant
        self.position = self.mark = self.comment_end = end

    def _quote(self, start: int, end: int) -> None:
        if end - start > 1:
            self._take(end, '"')
            return
        self.is_whole = False  # it does not end on its line
        match = _STRING_LINE_END.search(self.source, start)
        self._take(len(self.source) if match is None else match.start(), '"')

    def _slash(self, start: int, end: int) -> None:
        source = self.source
        following = source[end : end + 1]
        if following == "/":
            self._comment_to(start, self._line_end(end))
            return
        if following == "*":
            close = source.find("*/", end + 1)
            if close < 0:
                self._give_up()
                return
            is_on_new_line = self.frame.stops and _LINE_END.search(source, start, close) is not None
            self._comment_to(start, close + 2)
            if is_on_new_line:
                self._line(close + 2, close + 2)
            return
        if not self._ends_operand(self._before(start)) and start >= self.no_expression_before:
            expression = _REGULAR_EXPRESSION.match(source, start)
            if expression is not None:
                self._take(expression.end(), _OPERAND)
                return
            self.no_expression_before = self._line_end(start)
        self._take(end, "/")

    def _template(self, _start: int, end: int) -> None:
        match = _TEMPLATE_TEXT.match(self.source, end)
        end = end if match is None else match.end()
        if self.source.startswith("`", end):
            self._take(end + 1, "`")
        elif self.source.startswith("${", end):
            self._push(_Frame(_SUBSTITUTION, "}", in_function=self.frame.in_function), end + 2, "(")
        else:
            self._give_up()

    def _less(self, start: int, _end: int) -> None:
        """Treat `<!--`, which begins a comment in classic scripts."""
        if self.has_html_comments:
            self.saw_html_comment = True
            self._comment_to(start, self._line_end(start))
        else:
            self.position = start + 1

    def _minus(self, start: int, _end: int) -> None:
        """Treat `-->`, which begins a comment in classic scripts at the begin of a line."""
        if self.has_html_comments and (self._is_on_new_line(start) or not self._before(start)):
            self.saw_html_comment = True
            self._comment_to(start, self._line_end(start))
        else:
            self.position = start + 2

    def _escape(self, start: int, end: int) -> None:
        """Treat a name with an escape."""
        begin = start
        while begin > self.mark and _is_part(self.source[begin - 1]):
            begin -= 1
        match = _WHOLE_IDENTIFIER.match(self.source, begin)
        if match is None or match.end() <= start:
            self._take(end, _OPERAND)
            return
        name = _unescaped(match[0])
        if name in GLOBALS:
            self._name(begin, match.end(), name)
        else:
            self._take(match.end(), _OPERAND)

    # -- ends in lists of declarators, and in the arguments of import() ----------------------------------------------

    def _semicolon(self, _start: int, end: int) -> None:
        self._end_declaration()
        self._take(end, ";")

    def _end_declaration(self) -> None:
        frame = self.frame
        frame.declares = _NONE
        frame.stops = frame.reference >= 0

    def _comma(self, start: int, end: int) -> None:
        if self.frame.reference >= 0:
            self._end_argument(self.frame, start)
        self._take(end, ",")

    def _end_argument(self, frame: _Frame, position: int) -> None:
        """Note the first argument of `import()`, which ends before a position."""
        start, end = frame.start, self._end_before(position)
        if end > start:
            value = _value_of(self.source[start:end])
            self.references[frame.reference] = ModuleReference(SpecifierKind.DYNAMIC, start, end, value)
        frame.reference = -1
        frame.stops = False

    def _line(self, start: int, end: int) -> None:
        """Treat the end of a line between declarators: it may stand for a semicolon (ECMA-262, 12.10)."""
        self.position = max(end, self.position)
        frame = self.frame
        if frame.declares is _NONE or frame.kind not in _STATEMENTS:
            return
        before = self._before(start)
        following = self._next(end)
        character = self.source[following : following + 1]
        if before == "}" and self.closed.kind is _FUNCTION and not self.closed.is_expression:
            is_over = character not in (",", ";")
        elif before in (")", "}") or (before not in _DECLARING and self._ends_operand(before)):
            is_over = self._begins_operand(following)
        else:
            is_over = False
        if is_over:
            self._end_declaration()

    def _begins_operand(self, position: int) -> bool:
        """Return whether what begins at a position cannot go on an expression that an operand ends."""
        source = self.source
        character = source[position : position + 1]
        if not character:
            return False
        if _is_part(character) or character == "\\":
            match = _WHOLE_IDENTIFIER.match(source, position)
            return match is None or match[0] not in ("in", "instanceof", "of")
        if character in "+-":
            return source.startswith(character, position + 1)
        if character == "!":
            return not source.startswith("=", position + 1)
        return character in "\"'{~@#"

    # -- brackets ----------------------------------------------------------------------------------------------------

    def _push(self, frame: _Frame, end: int, last: str) -> None:
        self.stack.append(self.frame)
        self.frame = frame
        self.position = self.mark = end
        self.last = last
        if len(self.stack) > NESTED_AT_MOST:
            self._give_up()

    def _parenthesis(self, _start: int, end: int) -> None:
        outer = self.frame
        pending = outer.pending
        frame = _Frame(_GROUP, ")", in_function=outer.in_function)
        if pending is not None:
            outer.pending = None
            frame.kind = pending
            frame.is_expression = outer.is_pending_expression
            if pending in (_PARAMETERS, _CATCH):
                frame.binding = _INNER
        self._push(frame, end, "(")

    def _square(self, start: int, end: int) -> None:
        outer = self.frame
        frame = _Frame(_ARRAY, "]", in_function=outer.in_function)
        before = self._before(start)
        if self._ends_operand(before) and before not in _DECLARING:
            frame.kind = _INDEX
        else:
            self._find_role(frame, before)
        self._push(frame, end, "[")

    def _find_role(self, frame: _Frame, before: str) -> None:
        """Tell a bracket that is a pattern, or may be one, by the token before it."""
        outer = self.frame
        if outer.declares is not _NONE and (before in _DECLARING or before == ","):
            frame.binding = outer.declares
            return
        if outer.kind is _OBJECT:
            is_nested = before in _NESTED_OBJECT_TARGETS
        else:
            is_nested = outer.kind in _LISTS and before in _LIST_TARGETS
        if is_nested:
            frame.binding = outer.binding
            frame.is_target = outer.binding is _NONE

    def _brace(self, start: int, end: int) -> None:
        frame = self.frame
        before = self._before(start)
        closed = self.closed
        inner = _Frame(_OBJECT, "}", in_function=frame.in_function)
        if before == ")" and closed.kind is _PARAMETERS:
            self._set_function(inner, is_expression=closed.is_expression)
        elif frame.classes and (before != "extends" and not self._is_operator(before)):
            inner.kind, inner.in_function, inner.is_expression = _CLASS, True, frame.classes.pop()
        elif before == ")":
            if closed.kind is _SWITCH_HEAD:
                inner.kind, inner.is_expression = _SWITCH, False
            elif closed.kind is _GROUP and frame.kind in (_OBJECT, _CLASS):
                self._set_function(inner, is_expression=False)
            else:
                inner.kind, inner.is_expression = _BLOCK, False
        elif before == "=>" or (before == "static" and frame.kind is _CLASS):
            self._set_function(inner, is_expression=False)
        elif self._is_block(before, start):
            inner.kind, inner.is_expression = _BLOCK, False
        else:
            inner.is_expression = before != "with"  # the attributes of an import end its statement
            self._find_role(inner, before)
        frame.pending = None
        self._push(inner, end, "{")

    @staticmethod
    def _set_function(frame: _Frame, *, is_expression: bool) -> None:
        frame.kind, frame.in_function, frame.is_expression = _FUNCTION, True, is_expression

    def _is_block(self, before: str, start: int) -> bool:
        """Return whether a brace after a token begins a block, and no object."""
        if self.frame.kind not in _STATEMENTS:
            return False
        if before == ":":
            return self._is_block_after_colon()
        if before in ("", ";", "{", "}") or before in _OPERANDS:
            return True
        if not _is_part(before[0]):
            return False
        if before in ("return", "yield") and self._is_on_new_line(start):
            return True
        return before not in _OPERATOR_WORDS and before not in _DECLARING and before not in ("with", "import", "export")

    def _close(self, start: int, end: int) -> None:
        frame = self.frame
        closer = self.source[start]
        if closer != frame.closer:
            self.is_whole = False
            if not self.stack:
                self.closed = _Frame(_BLOCK, closer, in_function=False)
                self._take(end, closer)
                return
        if frame.reference >= 0:
            self._end_argument(frame, start)
        self.frame = self.stack.pop()
        if frame.kind is _SUBSTITUTION:
            self._template(start, end)
            return
        self.closed = frame
        self.position = self.mark = end
        self.last = closer
        if frame.has_location or frame.assignments is not None:
            self._settle(frame, end)

    def _settle(self, frame: _Frame, end: int) -> None:
        """Tell whether a bracket that has been closed is a pattern, or part of one."""
        outer = self.frame
        following = self._next(end)
        if frame.kind is _GROUP:
            is_method = outer.kind in (_OBJECT, _CLASS) and self.source.startswith("{", following)
            if is_method or self.source.startswith("=>", following):
                self.binds_location = self.binds_location or frame.has_location
                return
        is_pattern = frame.kind in (_ARRAY, _OBJECT) and self._is_pattern(outer, following)
        if is_pattern:
            frame.assignments = None
        if frame.is_target:
            outer.has_location = outer.has_location or frame.has_location
            outer.assignments = _joined(outer.assignments, frame.assignments)
        elif frame.assignments is not None:
            self.assignments += frame.assignments

    def _is_pattern(self, outer: _Frame, following: int) -> bool:
        if self._is_assigned(following):
            return True
        if outer.kind is not _HEAD:
            return False
        word = _WHOLE_IDENTIFIER.match(self.source, following)
        return word is not None and word[0] in ("of", "in")

    # -- words -------------------------------------------------------------------------------------------------------

    def _word(self, start: int, end: int) -> None:
        source = self.source
        if end < len(source) and source[end] > "\x7f" and _is_part(source[end]):
            self.position = end  # a longer name
            return
        if start and source[start - 1] > "\x7f" and _is_part(source[start - 1]):
            self.position = end
            return
        _WORD_HANDLERS[source[start:end]](self, start, end)

    def _global(self, start: int, end: int) -> None:
        self._name(start, end, self.source[start:end])

    def _bind(self, name: str, binding: _Binding) -> None:
        if binding is _TOP:
            self.declared.add(name)
        if name == "location":
            self.binds_location = True

    def _name(self, start: int, end: int, name: str) -> None:
        """Treat one of the `GLOBALS`."""
        before = self._before(start)
        self._take(end, _OPERAND)
        if before in _PROPERTY:
            return
        frame = self.frame
        kind = frame.kind
        if before == "class":
            self._bind(name, _INNER if frame.classes and frame.classes[-1] else self._lexical())
        elif frame.pending is _PARAMETERS and before in ("function", "*"):
            self._bind(name, _INNER if frame.is_pending_expression else self._lexical())
        elif kind is _CLASS and not self._is_operator(before):
            return
        elif frame.declares is not _NONE and (before in _DECLARING or before == ","):
            self._bind(name, frame.declares)
        elif frame.binding is not _NONE and before in (_OBJECT_TARGETS if kind is _OBJECT else _LIST_TARGETS):
            if kind is not _OBJECT or self.source[(at := self._next(end)) : at + 1] in (",", "}", "="):
                self._bind(name, frame.binding)
        elif name == "location":
            self._location(before, end)

    def _location(self, before: str, end: int) -> None:
        """Treat `location` where it is not bound, as far as is known."""
        frame = self.frame
        following = self._next(end)
        if self.source.startswith("=>", following):
            self.binds_location = True
            return
        is_assigned = self._is_assigned(following)
        if frame.kind is _OBJECT:
            is_target = before in _OBJECT_TARGETS
        else:
            is_target = frame.kind in _LISTS and before in _LIST_TARGETS
        if is_target:
            if is_assigned or self.source[following : following + 1] in (",", ")", "]", "}"):
                frame.has_location = True
            if is_assigned and not (frame.kind is _OBJECT and before in ("{", ",")):
                frame.assignments = _joined(frame.assignments, [end])
        elif is_assigned:
            self.assignments.append(end)

    def _lexical(self) -> _Binding:
        """Return what a declaration of a block binds here."""
        return _INNER if self.stack else _TOP

    def _as_key(self, start: int, end: int) -> bool:
        """Take a word, and return whether it is the name of a property."""
        before = self._before(start)
        is_key = self._is_key(before)
        self._take(end, _OPERAND if is_key else self.source[start:end])
        return is_key

    def _head(self, start: int, end: int) -> None:
        if not self._as_key(start, end):
            frame = self.frame
            frame.is_pending_expression = False
            match self.last:
                case "switch":
                    frame.pending = _SWITCH_HEAD
                case "catch":
                    frame.pending = _CATCH
                case _:
                    frame.pending = _HEAD

    def _case(self, start: int, end: int) -> None:
        if not self._as_key(start, end):
            self.frame.saw_question = False

    def _question(self, _start: int, end: int) -> None:
        self.frame.saw_question = True
        self._take(end, "?")

    def _function(self, start: int, end: int) -> None:
        before = self._before(start)
        if before == "async":
            before = self._before(self.token_start)
        if self._as_key(start, end):
            return
        self.frame.pending = _PARAMETERS
        self.frame.is_pending_expression = not self._begins_statement(before)

    def _class(self, start: int, end: int) -> None:
        before = self._before(start)
        if self._as_key(start, end):
            return
        frame = self.frame
        is_expression = not self._begins_statement(before)
        if frame.classes is None:
            frame.classes = []
        frame.classes.append(is_expression)

    def _declare(self, start: int, end: int) -> None:
        frame = self.frame
        if frame.kind not in _STATEMENTS and frame.kind is not _HEAD:
            self._as_key(start, end)
            self.last = _OPERAND
            return
        if self.source[start:end] == "let" and not self._is_declaring_let(start, end):
            self._take(end, _OPERAND)
            return
        if self._as_key(start, end):
            return
        if self.last == "var":
            frame.declares = _INNER if frame.in_function else _TOP
        else:
            frame.declares = self._lexical()
        frame.stops = True

    def _is_declaring_let(self, start: int, end: int) -> bool:
        before = self._before(start)
        if before not in ("(", "export") and not self._begins_statement(before):
            return False
        following = self._next(end)
        character = self.source[following : following + 1]
        if character in ("[", "{", "\\"):
            return True
        word = _WHOLE_IDENTIFIER.match(self.source, following)
        return word is not None and word[0] not in ("in", "instanceof", "of")

    # -- import and export -------------------------------------------------------------------------------------------

    def _import(self, start: int, end: int) -> None:
        if self._as_key(start, end):
            return
        following = self._next(end)
        character = self.source[following : following + 1]
        if character == "(":
            frame = _Frame(_IMPORT, ")", in_function=self.frame.in_function)
            frame.reference, frame.stops = len(self.references), True
            frame.start = self._next(following + 1)
            self.references.append(None)
            self._push(frame, following + 1, "(")
        elif character == ".":
            self._meta(start, end)
        elif not self.stack and character:
            self._statement(end)

    def _meta(self, start: int, end: int) -> None:
        meta = _META.match(self.source, end)
        if meta is None:
            self.last = _OPERAND
            return
        self.is_module = True
        url = _URL.match(self.source, meta.end())
        if url is not None:
            self.references.append(ModuleReference(SpecifierKind.META_URL, start, url.end(), None))
        self._take(meta.end() if url is None else url.end(), _OPERAND)

    def _export(self, start: int, end: int) -> None:
        if self._as_key(start, end) or self.stack:
            return
        following = self._next(end)
        character = self.source[following : following + 1]
        if character in ("{", "*"):
            self._statement(end, is_export=True)
            return
        word = _WHOLE_IDENTIFIER.match(self.source, following)
        if character == "@" or (word is not None and word[0] in _EXPORTED):
            self.is_module = True

    def _statement(self, end: int, *, is_export: bool = False) -> None:
        """Read the clause of an `import` or `export`. What is none stays for the scan."""
        clause = _Clause(self.source, end, is_export=is_export)
        if not clause.read():
            return
        self.is_module = True
        if not is_export:
            for name in clause.names & GLOBALS:
                self._bind(name, _TOP)
        if clause.specifier is not None:
            start, stop = clause.specifier
            value = _unescaped(self.source[start + 1 : stop - 1])
            self.references.append(ModuleReference(SpecifierKind.STATIC, start, stop, value))
        self._take(clause.position, '"' if clause.specifier else "}")
        self.closed = _Frame(_BLOCK, "}", in_function=False, is_expression=False)


_EXPORTED: Final = frozenset({"default", "var", "let", "const", "class", "function", "async"})


def _joined(first: list[int] | None, second: list[int] | None) -> list[int] | None:
    """Return two lists as one, by the growth of the longer one."""
    if first is None or second is None:
        return second if first is None else first
    if len(first) < len(second):
        first, second = second, first
    first += second
    return first


class _Clause:
    """The clause of an `import`, or of an `export` with braces or an asterisk."""

    def __init__(self, source: str, position: int, *, is_export: bool) -> None:
        self.source = source
        self.is_export = is_export
        #: Where the clause ends, as far as it has been read, and where the next token ends.
        self.position = position
        self.end = position
        #: The local names that an import binds.
        self.names: set[str] = set()
        self.specifier: tuple[int, int] | None = None

    def _advance(self) -> str:
        """Return the next token: a name, a punctuator, a string with its quotes, or "" for anything else."""
        self.position = self.end
        match = _CLAUSE_TOKEN.match(self.source, self.position)
        if match is None:
            return ""
        self.end = match.end()
        return _unescaped(match[1]) if match["name"] is not None else match[1]

    def read(self) -> bool:
        """Read the clause. Returns False if it is none."""
        word = self._advance()
        if _is_literal(word):
            return not self.is_export and self._take_specifier(word)
        if _is_word(word):
            self.names.add(word)
            word = self._advance()
            if word != ",":
                return self._read_from(word)
            word = self._advance()
            if word not in ("{", "*"):
                return False
        if word == "*":
            return self._read_namespace()
        if word != "{" or not self._read_names():
            return False
        word = self._advance()
        return (self.is_export and word != "from") or self._read_from(word)

    def _read_namespace(self) -> bool:
        word = self._advance()
        if word != "as":
            return self.is_export and self._read_from(word)
        name = self._advance()
        if not (_is_word(name) or (_is_literal(name) and self.is_export)):
            return False
        self.names.add(name)
        return self._read_from(self._advance())

    def _read_names(self) -> bool:
        word = self._advance()
        while word != "}":
            if not (_is_word(word) or _is_literal(word)):
                return False
            local, word = word, self._advance()
            if word == "as":
                local, word = self._advance(), self._advance()
            self.names.add(local)
            if word == ",":
                word = self._advance()
            elif word != "}":
                return False
        return True

    def _read_from(self, word: str) -> bool:
        return word == "from" and self._take_specifier(self._advance())

    def _take_specifier(self, literal: str) -> bool:
        if not _is_literal(literal):
            return False
        self.specifier = (self.end - len(literal), self.end)
        self.position = self.end
        return True


def _is_literal(token: str) -> bool:
    return token[:1] in ("'", '"')


def _is_word(token: str) -> bool:
    return token[:1] not in ("", "'", '"', "{", "}", ",", "*")


_WORD_HANDLERS: Final[dict[str, Callable[[_Scanner, int, int], None]]] = {
    **dict.fromkeys(GLOBALS, _Scanner._global),
    **dict.fromkeys(("if", "for", "while", "with", "switch", "catch"), _Scanner._head),
    **dict.fromkeys(("var", "let", "const"), _Scanner._declare),
    "case": _Scanner._case,
    "class": _Scanner._class,
    "export": _Scanner._export,
    "function": _Scanner._function,
    "import": _Scanner._import,
}
_HANDLERS: Final[dict[str, Callable[[_Scanner, int, int], None]]] = {
    "(": _Scanner._parenthesis,
    ")": _Scanner._close,
    "[": _Scanner._square,
    "]": _Scanner._close,
    "{": _Scanner._brace,
    "}": _Scanner._close,
    "`": _Scanner._template,
    "/": _Scanner._slash,
    "\\": _Scanner._escape,
    '"': _Scanner._quote,
    "'": _Scanner._quote,
    "?": _Scanner._question,
    "<": _Scanner._less,
    "-": _Scanner._minus,
    ";": _Scanner._semicolon,
    ",": _Scanner._comma,
    **dict.fromkeys("\n\r\u2028\u2029", _Scanner._line),
    **dict.fromkeys((first for first, _ in _WORDS), _Scanner._word),
}
