"""As much of a Kubernetes API as Helm's `lookup` asks for: the objects it holds, and nothing else."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

_DEPLOYMENTS = {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get"]}
_APPS = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [_DEPLOYMENTS]}


@contextmanager
def holding(deployments: Mapping[tuple[str, str], Mapping[str, Any]], folder: Path) -> Iterator[Path]:
    """The kubeconfig, written to `folder`, of a cluster with these Deployments: (namespace, name) to spec."""
    objects: dict[str, Any] = {
        f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        for (namespace, name), spec in deployments.items()
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler({"/apis/apps/v1": _APPS, **objects}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(_config(f"http://127.0.0.1:{server.server_address[1]}")))
        yield kubeconfig
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()


def _config(address: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": address}}],
        "users": [{"name": "it", "user": {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }


def _handler(objects: Mapping[str, Any]) -> type[BaseHTTPRequestHandler]:
    missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = objects.get(self.path.partition("?")[0])
            body = json.dumps(missing if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Handler
