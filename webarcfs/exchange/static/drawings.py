"""SVG without what a browser would run: a drawing has no place for a policy that forbids it. Pure.

A drawing that has nothing of that kind stays byte for byte. Any other is written anew without it. The parser is that of
browsers; what it cannot read to the end, they show up to the fault, and so does this.
"""

from __future__ import annotations

import re

from lxml import etree

_SVG = "http://www.w3.org/2000/svg"
_XHTML = "http://www.w3.org/1999/xhtml"
#: Elements that run something or contain a page.
_OUT = frozenset({"script", "foreignObject", "handler", "listener", "iframe", "audio", "video", "canvas"})
_ANIMATIONS = frozenset({"animate", "set", "animateTransform", "animateMotion", "animateColor"})
#: What brings in markup or attributes that stand elsewhere.
_DECLARATION = re.compile(rb"<!(?:ENTITY|ATTLIST)")
_SCHEME = re.compile(r"[\0-\x20]*([a-z][a-z0-9+.-]*):([^,;]*)", re.IGNORECASE)
_DROPPED = {ord(each): None for each in "\t\n\r"}
#: Times that a drawing is looked at.
_MOST = 4
_NOTHING = f'<svg xmlns="{_SVG}"/>\n'.encode()


def cleaned(drawing: bytes) -> tuple[bytes, bool]:
    """Return a drawing that runs nothing, and whether it is another one now."""
    made = _made(drawing)
    if made is None:
        return drawing, False
    # What entities bring in is only found in the drawing that is written without them.
    for _ in range(_MOST):
        drawing, made = made, _made(made)
        if made is None:
            return drawing, True
    return _NOTHING, True


def _made(drawing: bytes) -> bytes | None:
    """Return a drawing without what was found in it; None if there was nothing."""
    root = _parsed(drawing, as_found=True)
    if root is not None and not _DECLARATION.search(drawing) and not _clean(root):
        return None
    root = _parsed(drawing, as_found=False)
    if root is None or root.tag != f"{{{_SVG}}}svg":
        return None if drawing == _NOTHING else _NOTHING
    _clean(root)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _parsed(drawing: bytes, *, as_found: bool) -> etree._Element | None:
    """Parse a drawing: without putting entities in, and only if it is sound; or as far as that is possible.

    libxml2 bounds what becomes of entities. It loads nothing.
    """
    parser = etree.XMLParser(
        recover=not as_found, resolve_entities=not as_found, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        root: etree._Element | None = etree.fromstring(drawing, parser)
    except (etree.LxmlError, ValueError):
        return None
    return root


def _clean(root: etree._Element) -> bool:
    """Remove what may run; return whether there was anything. The root stays, whatever it is."""
    found = False
    for element in list(root.iter(etree.Element)):
        if _runs(element):
            found = True
            parent = element.getparent()
            if parent is not None:
                _remove(parent, element)
        else:
            active = [name for name, value in element.attrib.items() if _is_active(str(name), str(value))]
            for name in active:
                del element.attrib[name]
            found = found or bool(active)
    return found


def _remove(parent: etree._Element, element: etree._Element) -> None:
    """Remove an element without the text behind it."""
    before = element.getprevious()
    if element.tail and before is None:
        parent.text = (parent.text or "") + element.tail
    elif element.tail and before is not None:
        before.tail = (before.tail or "") + element.tail
    parent.remove(element)


def _runs(element: etree._Element) -> bool:
    namespace, _, name = str(element.tag).rpartition("}")
    if namespace == f"{{{_XHTML}":
        return True
    if name in _ANIMATIONS:
        changed = (element.get("attributeName") or "").rpartition(":")[2].lower()
        return changed in ("href", "src") or changed.startswith("on")
    return namespace == f"{{{_SVG}" and name in _OUT


def _is_active(name: str, value: str) -> bool:
    local = name.rpartition("}")[2].lower()
    if local not in ("href", "src"):
        return local.startswith("on")
    scheme = _SCHEME.match(value.translate(_DROPPED))
    if scheme is None:
        return False
    kind = scheme[2].strip().lower()
    return scheme[1].lower() not in ("data", "about") or not (kind in ("", "blank") or kind.startswith("image/"))
