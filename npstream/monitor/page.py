"""The live page: one HTML file that asks this worker's `/status` and nobody else."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

_INLINE = {kind: re.compile(f"<{kind}>(.*?)</{kind}>", re.DOTALL) for kind in ("script", "style")}


@cache
def live_page() -> bytes:
    """The page as it is served."""
    return files("npstream.monitor").joinpath("page.html").read_bytes()


@cache
def page_policy() -> str:
    """The content security policy: its own inline script and style, requests to its own server, nothing else."""
    text = live_page().decode()
    allowed = {kind: " ".join(map(_source, pattern.findall(text))) for kind, pattern in _INLINE.items()}
    return (
        f"default-src 'none'; script-src {allowed['script']}; style-src {allowed['style']}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _source(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
