"""A real schema registry for the tests."""

from tests.registry.provider import Registry, StartRegistry, local_server, provide_registry
from tests.registry.server_process import RegistryServer

__all__ = ["Registry", "RegistryServer", "StartRegistry", "local_server", "provide_registry"]
