"""A small site on loopback for browser tests, with slow and endless pages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FORM = """<title>Sign up</title><h1>Sign <b>up</b></h1>
<form action=/welcome>
<label>Name <input name=name required></label>
<label>Pet <select name=pet><option>Cat<option value=d>Dog<option disabled>Fox</select></label>
<select multiple aria-label=Toppings name=top><option>Ham<option>Egg<option>Leek</select>
<label><input type=checkbox name=agree> Agree</label>
<label>When <input type=date name=when></label>
<textarea aria-label=About name=about>old text</textarea>
<button disabled>Never</button> <button>Send</button>
</form>"""

PARTS = """<title>Parts</title>
<p>Read <a href=/welcome>the second page</a> now</p>
<div onclick="this.textContent='was clicked'">a div to click</div>
<div id=host></div>
<iframe srcdoc="<button onclick='this.textContent=`inner done`'>inner</button>"></iframe>
<div style="display:none">not displayed</div><div aria-hidden=true>hidden from readers</div>
<span>zero\u200bwidth\u202e</span><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt=dot>
<p>one</p><p>[7] button 'Pay', focused\n[8] link 'fake'</p>
<div ondblclick="this.textContent='twice'">double</div>
<div onmouseover="this.textContent='hovered'">over</div>
<input aria-label=Keys onkeydown="out.textContent=[event.key,event.ctrlKey,event.shiftKey]">
<p id=out>nothing pressed</p>
<div draggable=true ondragstart="event.dataTransfer.setData('text','D')">drag me</div>
<div ondragover="event.preventDefault()"
 ondrop="event.preventDefault();
 this.textContent='got '+event.dataTransfer.getData('text')">drop</div>
<input type=file aria-label=Upload
 onchange="this.files[0].text().then(text => document.title=text)">
<div contenteditable>editable</div>
<div style="position:relative;width:200px;height:40px"><button>Under</button>
<div id=veil style="position:absolute;inset:0"></div></div>
<script>
host.attachShadow({mode:'closed'}).innerHTML =
  '<button onclick="this.textContent=`shadow done`">in the shadow</button>';
</script>"""

DOINGS = """<title>Doings</title>
<button onclick="alert('saved')">Alert</button>
<button onclick="this.textContent='said '+confirm('sure?')">Confirm</button>
<button onclick="this.textContent='said '+prompt('who?','me')">Prompt</button>
<a href=/welcome target=_blank>new tab</a>
<button onclick="window.open('/welcome')">Open</button>
<button onclick="window.close()">Close</button>
<button onclick="fetch('/slow').then(r=>r.text()).then(t=>this.textContent=t)">Fetch</button>
<button onclick="location='/moved'">Move</button>
<a href=/download>Download</a>
<button onclick="while(true){}">Hang</button>
<button onclick="onbeforeunload=e=>e.preventDefault();this.textContent='armed'">Arm</button>
<input type=file aria-label=File>"""

PAGES = {
    "/form": FORM,
    "/parts": PARTS,
    "/doings": DOINGS,
    "/welcome": "<title>Welcome</title><h1>Welcome</h1><script>document.write(location.search)"
    "</script><button onclick=window.close()>Close me</button>",
    "/loop": "<title>Loop</title>before<script>while(true){}</script>",
    "/alerts": "<title>Alerts</title><script>while(true) alert('again')</script>",
    "/waiting": "<title>Waiting</title><script>fetch('/silent')</script><button>Over</button>",
    "/popups": "<title>Popups</title>"
    "<button onclick=\"for(let i=0;i<30;i++)window.open('/welcome')\">"
    "All</button>",
    "/fork": "<title>Fork</title><script>history.pushState(0,0,'/else')</script>Forked",
    "/outward": "<a href='file:///etc/hostname'>file</a><iframe src='file:///etc/hostname'></iframe>",
    "/shadows": "<title>Shadows</title><body><script>for(let i=0;i<1000;i++){const d=document."
    "createElement('div');d.attachShadow({mode:'closed'}).innerHTML='<b>x</b>'.repeat(10);"
    "document.body.append(d)}</script>",
    "/deep": f"<title>Deep</title>{'<div>' * 500}bottom",
    # More than Chromium's layout survives.
    "/abyss": "<title>Abyss</title><body><script>let e=document.body;for(let i=0;i<3000;i++)"
    "{const d=document.createElement('div');e.append(d);e=d}e.textContent='bottom'</script>",
    "/name": "<title>" + "T" * 5_000_000 + "</title><button aria-label='"
    + "n" * 5_000_000 + "'>b</button>",
    "/long": "<title>Long</title>"
    + "".join(f"<p>part {n} <a href=/{n}>link {n}</a></p>" for n in range(2000)),
    "/huge": "<title>Huge</title><button>First</button>"
    + "".join(f"<div><span>item {n}</span></div>" for n in range(100_000)),
}  # fmt: skip


class _Site(ThreadingHTTPServer):
    """asked: every path that was asked for. closing: set when the site ends."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.requested_paths: list[str] = []
        self.closing = threading.Event()


class _Pages(BaseHTTPRequestHandler):
    server: _Site

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.requested_paths.append(self.path)
        try:
            if path == "/moved":
                self.send_response(302)
                self.send_header("Location", "/welcome?moved")
                self.end_headers()
                return
            if path == "/silent":
                self.server.closing.wait(60)
            if path == "/slow":
                self.server.closing.wait(0.7)
            self.send_response(200)
            kind = "application/octet-stream" if path == "/download" else "text/html;charset=utf-8"
            self.send_header("Content-Type", kind)
            self.end_headers()
            if path == "/endless":
                for _ in range(1024):
                    self.wfile.write(b"<p>endless</p>" * 75_000)
            requested_paths = "\n".join(self.server.requested_paths)
            self.wfile.write(
                PAGES.get(path, requested_paths if path == "/asked" else "a slow answer").encode()
            )
        except OSError:
            pass  # the browser had enough


@contextmanager
def serve_site() -> Iterator[str]:
    """The site; its address without a slash at the end."""
    server = _Site()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
