"""What is done on a page that a browser shows, so that it asks for what a reader would come to see. Pure.

Each behaviour is an expression of JavaScript. It runs in a world of its own, which scripts of the page cannot reach,
and does one step. The next step waits until all that the page asked for has come. Each can be left out by its name.

| name | what a step does |
|---|---|
| `scroll` | scrolls by four fifths of the window; the end is where three steps change nothing |
| `lazy` | loads images and frames that wait until a reader comes near |
| `more` | clicks visible buttons with words such as "Load more"; none in links or forms |
| `play` | plays media without their sound, so that they are asked for |

Parts of web components are found as well, in open shadow roots. No consent is given by itself:
`[[publication.click]]` names texts that a person wants to be clicked.
"""

from __future__ import annotations

import json
from typing import Final

#: Open shadow roots that are looked into.
_MOST_ROOTS: Final = 10_000
#: A form or a picture of that name takes the place of the function at the document itself, in each world.
_QUERY: Final = """const query = (root, selector) =>
    Reflect.get(root === document ? Document.prototype : root, "querySelectorAll").call(root, selector);"""
#: Web components hide what they consist of from `querySelectorAll`: their open shadow roots are looked into as well.
_EVERYWHERE: Final = f"""{_QUERY}
  const everywhere = function* (selector) {{
    const roots = [document];
    for (const root of roots) {{  // grows
      yield* query(root, selector);
      for (const host of query(root, "*")) {{
        if (host.shadowRoot instanceof ShadowRoot && roots.length <= {_MOST_ROOTS}) roots.push(host.shadowRoot);
      }}
    }}
  }};
  const isWithin = (element, selector) => {{
    for (let at = element; at; at = at.getRootNode().host) if (at.closest(selector)) return true;
    return false;
  }};"""
#: Steps in a row that change nothing, after which a page is at its end.
STILL: Final = 3
#: Returns the position and the height of the page.
SCROLL: Final = """(() => {
  const page = document.scrollingElement || document.documentElement;
  if (!page) return "";
  page.scrollBy({top: innerHeight * 0.8, behavior: "instant"});
  return page.scrollTop + "/" + page.scrollHeight;
})()"""
TO_THE_TOP: Final = """(() => {
  const page = document.scrollingElement || document.documentElement;
  if (page) page.scrollTo({top: 0, behavior: "instant"});
})()"""
LAZY: Final = f"""(() => {{
  {_EVERYWHERE}
  const lazy = globalThis.webarcLazy || (globalThis.webarcLazy = new Set());
  for (const element of everywhere("img[loading=lazy], iframe[loading=lazy]")) {{
    lazy.add(element);
    element.loading = "eager";
  }}
}})()"""
#: Gives the page its own words back, so that its DOM is kept as its scripts made it.
LAZY_AGAIN: Final = """(() => {
  for (const element of globalThis.webarcLazy || []) element.loading = "lazy";
})()"""
PLAY: Final = f"""(() => {{
  {_EVERYWHERE}
  for (const media of everywhere("video, audio")) {{
    media.muted = true;
    media.play().catch(() => {{}});
  }}
}})()"""
#: What buttons say that load more, whole and in lower case.
_MORE_WORDS: Final = (
    r"^(?:(?:load|show|view|see) (?:\d+ )?more(?: [a-z]+)?|more(?: results)?|"
    r"mehr (?:laden|anzeigen)|weitere(?: [a-zäöüß]+)?(?: laden| anzeigen)?|"
    r"(?:voir|afficher) plus|(?:charger|afficher) la suite|(?:ver|mostrar|carregar|cargar) m[aá][is]s?)\W*$"
)


def more(clicks: int) -> str:
    """Return the expression that clicks buttons that load more, each up to `clicks` times; it returns how many."""
    return f"""(() => {{
  {_EVERYWHERE}
  const words = new RegExp({json.dumps(_MORE_WORDS)}, "i");
  const clicked = globalThis.webarcClicked || (globalThis.webarcClicked = new WeakMap());
  let count = 0;
  for (const button of everywhere("button, [role=button], input[type=button]")) {{
    if (isWithin(button, "a, form") || !button.checkVisibility || !button.checkVisibility()) continue;
    const times = clicked.get(button) || 0;
    if (times >= {clicks} || !words.test((button.innerText || button.value || "").trim())) continue;
    clicked.set(button, times + 1);
    button.click();
    count += 1;
  }}
  return count;
}})()"""


def click(text: str) -> str:
    """Return the expression that clicks what can be clicked and says exactly `text`; it returns whether it did."""
    return f"""(() => {{
  {_EVERYWHERE}
  const text = {json.dumps(text)};
  const wanted = "button, [role=button], input[type=button], input[type=submit], a";
  for (const element of everywhere(wanted)) {{
    if ((element.innerText || element.value || "").trim() !== text) continue;
    if (!element.checkVisibility || !element.checkVisibility()) continue;
    element.click();
    return true;
  }}
  return false;
}})()"""


def first_script(start: int, seed: int) -> str:
    """Return what runs in each document before its own scripts.

    The clock starts at `start`, in milliseconds since 1970, and runs as time passes: setting the machine's clock does
    not set it. Random numbers follow from `seed`. There are no service workers: their requests would belong to no page.
    """
    return f"""(() => {{
  const RealDate = Date, passed = performance.now.bind(performance), begun = passed();
  const now = () => {start} + Math.floor(passed() - begun);
  const PageDate = new Proxy(RealDate, {{
    construct: (type, given, target) => Reflect.construct(type, given.length ? given : [now()], target),
    apply: () => new RealDate(now()).toString(),
    get: (type, name, receiver) => name === "now" ? now : Reflect.get(type, name, receiver),
  }});
  Object.defineProperty(RealDate.prototype, "constructor", {{value: PageDate, writable: true, configurable: true}});
  Object.defineProperty(globalThis, "Date", {{value: PageDate, writable: true, configurable: true}});
  let state = {seed} | 0;
  Math.random = () => {{
    state = state + 0x6D2B79F5 | 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) / 4294967296;
  }};
  if (globalThis.Navigator) delete Navigator.prototype.serviceWorker;
}})()"""


#: A form or a picture named `body` takes the place of that property of the document, in each world.
_OF_DOCUMENT: Final = "const own = name => Reflect.get(Document.prototype, name, document);"
#: What a page shows, read in a world of its own; `size` is that of its DOM in letters. `innerText` leaves out what is
#: in shadow roots: that follows the rest.
SHOWN: Final = f"""(() => {{
  {_OF_DOCUMENT}
  {_QUERY}
  const most = 10000000, body = own("body"), whole = own("documentElement");
  const isVisible = element => Element.prototype.checkVisibility.call(element);
  const isShown = element => isVisible(element) || getComputedStyle(element).display === "contents";
  const texts = [body ? String(body.innerText || "") : ""];
  let length = texts[0].length;
  const roots = [document];
  for (const root of roots) {{  // grows
    for (const host of query(root, "*")) {{
      if (!(host.shadowRoot instanceof ShadowRoot) || !isShown(host)) continue;
      if (length > most || roots.length > {_MOST_ROOTS}) continue;
      roots.push(host.shadowRoot);
      for (const node of host.shadowRoot.childNodes) {{
        const text = node.nodeType === Node.TEXT_NODE ? node.data : node.innerText;
        if (!text || !text.trim() || node instanceof Element && !isShown(node)) continue;
        texts.push(text);
        length += text.length;
      }}
    }}
  }}
  return {{
    at: location.href,
    title: String(own("title") || "").slice(0, 10000),
    text: texts.join("\\n").slice(0, most),
    size: whole ? whole.outerHTML.length : 0,
  }};
}})()"""


#: The fragments of links that lead to another view of the same document (`#/one`, `#!/one`), each once.
ROUTES: Final = f"""(() => {{
  {_EVERYWHERE}
  const here = location.href.split("#")[0], routes = new Set();
  for (const link of everywhere("a[href*='#']")) {{
    if (!(link instanceof HTMLAnchorElement) || link.href.split("#")[0] !== here) continue;
    if (/^#[/!]/.test(link.hash) && link.hash.length <= 2000 && routes.size < 1000) routes.add(link.hash);
  }}
  return [...routes];
}})()"""


def go_to(route: str) -> str:
    """Return the expression that has a page show the view of a fragment."""
    return f"location.hash = {json.dumps(route)}"


def start_of(length: int) -> str:
    """Return the expression for so many letters of a page's DOM."""
    return f"""(() => {{
  {_OF_DOCUMENT}
  const whole = own("documentElement");
  return whole ? whole.outerHTML.slice(0, {length}) : "";
}})()"""
