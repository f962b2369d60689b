"""A real schema registry for the tests."""

from tests.registry.provider import NoRegistry, Registry, StartRegistry, local_server, provide_registry
from tests.registry.server_process import RegistryServer

__all__ = ["NoRegistry", "Registry", "RegistryServer", "StartRegistry", "local_server", "provide_registry"]
