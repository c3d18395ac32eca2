"""Regular expressions of strangers, matched in time linear in the text. Pure.

Python's `re` backtracks, so an expression such as `(a+)+b` would occupy it for years. This is the part of the syntax
that needs no backtracking: characters, `.`, `[…]`, `\\d \\w \\s` and their opposites, groups, `|`, `* + ? {m,n}` (lazy
forms mean the same), `^`, `$`. Back references, look-around and possessive forms are refused, and so is what would need
more than `MOST_STEPS` steps. A pattern matches the whole text, as in the Wayback Machine's CDX server.

It is an automaton (Thompson, 1968) whose sets of states are made when they are needed, and are kept up to a bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: Longest expression, in characters.
LONGEST_PATTERN = 200
#: Most steps of an automaton; `{m,n}` repeats what it stands behind, so it could have many.
MOST_STEPS = 1_000
#: Most sets of states that are kept; if there are more, all are made anew, which costs time but no correctness.
MOST_SETS = 500
#: Most different characters that a set of states remembers the next set of.
_MOST_CHARACTERS = 256
_DEEPEST = 20
#: `[…]`; a ] that comes first is a character; of the escapes those that are understood.
_BRACKETS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\[^A-Za-z0-9]|\\[dwsDWStnrf])*\]", re.DOTALL)
#: Escapes, and what Python may one day understand as operations of sets.
_IN_BRACKETS = re.compile(r"\\.|[\[&~|]", re.DOTALL)
_COUNT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}", re.ASCII)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CLASSES = {"d": "[0-9]", "w": "[A-Za-z0-9_]", "s": "[ \\t\\n\\r\\f\\v]"}
_CLASSES |= {name.upper(): f"[^{text[1:]}" for name, text in _CLASSES.items()}


@dataclass(frozen=True, slots=True)
class BadPattern:
    """What is wrong with an expression, for people."""

    what: str


@dataclass(slots=True)
class _Step:
    """A step of the automaton: a character that `test` accepts leads on; without a test all of `then` are reached."""

    test: re.Pattern[str] | str | None = None
    assertion: str = ""  # ^ or $
    then: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the automaton: where it begins, and the step at which it ends."""

    begin: int
    end: int


@dataclass(slots=True)
class _Set:
    """A set of steps in which the automaton can be at once: those that wait for a character, and what comes next."""

    steps: frozenset[int]
    accepts: bool
    following: dict[str, _Set] = field(default_factory=dict)


class LinearPattern:
    """A compiled expression. Not for several threads at once."""

    def __init__(self, steps: list[_Step], begin: int, end: int) -> None:
        self._steps = steps
        self._end = end
        self._sets: dict[frozenset[int], _Set] = {}
        self._start = self._set_of([begin], at_start=True)

    def matches(self, text: str) -> bool:
        """Return whether the expression matches the whole text, in time linear in it."""
        state = self._start
        for character in text:
            following = state.following.get(character)
            state = self._following(state, character) if following is None else following
            if not state.steps:
                return False
        return state.accepts

    def _following(self, state: _Set, character: str) -> _Set:
        reached: list[int] = []
        for each in state.steps:
            step = self._steps[each]
            if step.test is None:
                continue
            if step.test == character if isinstance(step.test, str) else step.test.match(character):
                reached += step.then
        found = self._set_of(reached, at_start=False)
        if len(state.following) < _MOST_CHARACTERS:
            state.following[character] = found
        return found

    def _set_of(self, begins: list[int], *, at_start: bool) -> _Set:
        waiting, _ = self._reach(begins, at_start=at_start, at_end=False)
        steps = frozenset(waiting)
        # The first set is apart: only there `^` is true.
        if not at_start and (known := self._sets.get(steps)) is not None:
            return known
        _, reached = self._reach(begins, at_start=at_start, at_end=True)
        found = _Set(steps, self._end in reached)
        if not at_start:
            if len(self._sets) >= MOST_SETS:
                self._forget()
            self._sets[steps] = found
        return found

    def _forget(self) -> None:
        for each in (*self._sets.values(), self._start):
            each.following.clear()
        self._sets.clear()

    def _reach(self, begins: list[int], *, at_start: bool, at_end: bool) -> tuple[set[int], set[int]]:
        """Return the steps that wait for a character, or for the end, and all that is reached without a character."""
        waiting: set[int] = set()
        seen: set[int] = set()
        todo = list(begins)
        while todo:
            each = todo.pop()
            if each in seen:
                continue
            seen.add(each)
            step = self._steps[each]
            if step.test is not None or (step.assertion == "$" and not at_end) or each == self._end:
                waiting.add(each)
            elif step.assertion != "^" or at_start:
                todo += step.then
        return waiting, seen


def compile_pattern(text: str) -> LinearPattern | BadPattern:
    """Return the automaton of an expression, or what is wrong with it."""
    if len(text) > LONGEST_PATTERN:
        return BadPattern(f"an expression has {LONGEST_PATTERN} characters at most")
    parser = _Parser(text)
    try:
        piece = parser.alternatives(0)
        if parser.at < len(text):
            raise ValueError("there is a ) without a (")
        return LinearPattern(parser.steps, piece.begin, piece.end)
    except ValueError as fault:
        return BadPattern(f"{fault}, at character {parser.at + 1}")


class _Parser:
    """Reads an expression into steps."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self.steps: list[_Step] = []

    def alternatives(self, depth: int) -> _Piece:
        if depth > _DEEPEST:
            raise ValueError("there are too many groups inside groups")
        pieces = [self._sequence(depth)]
        while self._takes("|"):
            pieces.append(self._sequence(depth))
        if len(pieces) == 1:
            return pieces[0]
        end = self._step()
        for each in pieces:
            self.steps[each.end].then.append(end)
        return _Piece(self._step(*(each.begin for each in pieces)), end)

    def _sequence(self, depth: int) -> _Piece:
        whole = self._empty()
        while self.at < len(self._text) and self._text[self.at] not in "|)":
            begin = self.at
            piece = self._atom(depth)
            whole = self._joined(whole, self._repeated(piece, begin, depth))
        return whole

    def _atom(self, depth: int) -> _Piece:
        character = self._text[self.at]
        self.at += 1
        if character == "(":
            if self._takes("?") and not self._takes(":"):
                raise ValueError("only groups ( ) and (?: ) are understood")
            piece = self.alternatives(depth + 1)
            if not self._takes(")"):
                raise ValueError("a group has no end")
            return piece
        if character in "*+?{":
            raise ValueError(f"{character} repeats nothing")
        if character in "^$":
            end = self._step()
            return _Piece(self._add(_Step(assertion=character, then=[end])), end)
        end = self._step()
        return _Piece(self._add(_Step(test=self._test(character), then=[end])), end)

    def _test(self, character: str) -> re.Pattern[str] | str:
        if character == ".":
            return re.compile(".", re.DOTALL)
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        return character

    def _escape(self) -> re.Pattern[str] | str:
        name = self._text[self.at : self.at + 1]
        self.at += 1
        if name in _CLASSES:
            return re.compile(_CLASSES[name])
        if name in _ESCAPES:
            return _ESCAPES[name]
        if not name or name.isalnum():
            raise ValueError(f"\\{name} is not understood")
        return name

    def _class(self) -> re.Pattern[str]:
        """Read `[…]`; Python compiles it, since it matches one character and cannot backtrack."""
        match = _BRACKETS.match(self._text, self.at - 1)
        if match is None:
            raise ValueError("a set of characters has no end, or contains what is not understood")
        self.at = match.end()
        if "--" in match[0]:
            raise ValueError("-- in a set of characters is not understood")
        try:
            inside = _IN_BRACKETS.sub(lambda each: each[0] if len(each[0]) > 1 else f"\\{each[0]}", match[0][1:-1])
            return re.compile(f"[{inside}]")
        except re.error:
            raise ValueError("a set of characters has a range that is none") from None

    def _repeated(self, piece: _Piece, begin: int, depth: int) -> _Piece:
        """Return a piece with what stands behind it: `*`, `+`, `?`, `{m,n}` or nothing."""
        end = self.at
        character = self._text[end : end + 1]
        if not character or character not in "*+?{":
            return piece
        least, most = self._bounds(character)
        if self._takes("+"):
            raise ValueError("possessive forms are not understood")
        self._takes("?")
        behind = self.at
        if character in "*+" or (least, most) == (0, 1):
            whole = self._looped(piece, character)
        else:
            whole = self._counted(begin, depth, least, most)
        self.at = behind
        return whole

    def _bounds(self, character: str) -> tuple[int, int | None]:
        if character != "{":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        match = _COUNT.match(self._text, self.at)
        if match is None:
            raise ValueError("{ does not begin a number of repetitions")
        self.at = match.end()
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if most is not None and most < least:
            raise ValueError("the larger number of repetitions stands first")
        return least, most

    def _looped(self, piece: _Piece, how: str) -> _Piece:
        end = self._step()
        if how == "?":
            self.steps[piece.end].then.append(end)
            return _Piece(self._step(piece.begin, end), end)
        loop = self._step(piece.begin, end)
        self.steps[piece.end].then.append(loop)
        return _Piece(loop if how == "*" else piece.begin, end)

    def _counted(self, begin: int, depth: int, least: int, most: int | None) -> _Piece:
        """Return repetitions: the piece that begins at `begin` is read again for each."""
        whole = self._empty()
        for _ in range(least):
            whole = self._joined(whole, self._again(begin, depth))
        if most is None:
            return self._joined(whole, self._looped(self._again(begin, depth), "*"))
        for _ in range(most - least):
            whole = self._joined(whole, self._looped(self._again(begin, depth), "?"))
        return whole

    def _again(self, begin: int, depth: int) -> _Piece:
        self.at = begin
        return self._atom(depth)

    def _joined(self, one: _Piece, other: _Piece) -> _Piece:
        self.steps[one.end].then.append(other.begin)
        return _Piece(one.begin, other.end)

    def _empty(self) -> _Piece:
        step = self._step()
        return _Piece(step, step)

    def _step(self, *then: int) -> int:
        return self._add(_Step(then=list(then)))

    def _add(self, step: _Step) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise ValueError("the expression is too complex")
        self.steps.append(step)
        return len(self.steps) - 1

    def _takes(self, character: str) -> bool:
        """Go on behind `character`, if it comes next, and return whether it does."""
        found = self._text.startswith(character, self.at)
        self.at += found
        return found
