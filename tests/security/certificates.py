"""Certificates for a test broker, made with openssl: an authority, and a server and clients signed by it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority: its PEM certificate, which clients trust, and its key."""

    certificate: Path
    key: Path


def make_authority(folder: Path, name: str) -> Authority:
    """A new self-signed authority in `folder`."""
    made = Authority(folder / f"{name}.crt", folder / f"{name}.key")
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", f"/CN={name}", "-keyout", str(made.key), "-out", str(made.certificate)),
    )
    return made


def make_keystore(folder: Path, authority: Authority) -> Path:
    """A PEM keystore (key, then certificate) of a server on the loopback address."""
    key, request, certificate = (folder / f"server.{end}" for end in ("key", "csr", "crt"))
    names = folder / "names.txt"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=broker"),
        *("-keyout", str(key), "-out", str(request)),
    )
    _openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(authority.certificate), "-CAkey", str(authority.key)),
        *("-CAcreateserial", "-days", "2", "-extfile", str(names), "-out", str(certificate)),
    )
    store = folder / "server.pem"
    store.write_text(key.read_text() + certificate.read_text())
    return store


@dataclass(frozen=True, slots=True)
class Client:
    """A client's certificate and its key, as PEM files; brokers know it by `CN=name`."""

    certificate: Path
    key: Path


def make_client(folder: Path, name: str, authority: Authority, days: int = 2) -> Client:
    """A client's certificate; with negative `days` one that has expired already."""
    key, request, certificate = (folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}"),
        *("-keyout", str(key), "-out", str(request)),
    )
    _openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(authority.certificate), "-CAkey", str(authority.key)),
        *("-CAcreateserial", "-days", str(days), "-out", str(certificate)),
    )
    return Client(certificate, key)


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, f"openssl {' '.join(arguments)}\n{done.stderr}"
