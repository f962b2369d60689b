"""The live page: one HTML file, made of the parts in `web`, that asks its own server and nobody else."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

_SCRIPTS = ("words.js", "charts.js", "partition.js", "page.js")


@cache
def live_page() -> bytes:
    """The page as it is served."""
    page = _part("index.html").replace("/* style */", _part("style.css"), 1)
    return page.replace("/* script */", _script(), 1).encode()


@cache
def page_policy() -> str:
    """The content security policy: its own inline script and style, requests to its own server, nothing else."""
    return (
        f"default-src 'none'; script-src {_source(_script())}; style-src {_source(_part('style.css'))}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _script() -> str:
    return '"use strict";\n' + "".join(map(_part, _SCRIPTS))


def _part(name: str) -> str:
    return files("npstream.monitor").joinpath("web", name).read_text("utf-8")


def _source(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
