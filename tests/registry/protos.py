"""Message classes of .proto text, as a producer has them, compiled by protoc in this process's own way."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc


def message_classes(files: dict[str, str]) -> dict[str, Any]:
    """Every message class, nested ones too, of .proto files by name; by the full name of the message."""
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text)
        target = Path(folder, "all.bin")
        include = str(Path(protoc.__file__).parent / "_proto")
        arguments = ["protoc", f"-I{folder}", f"-I{include}", "--include_imports", f"--descriptor_set_out={target}"]
        assert protoc.main([*arguments, *files]) == 0
        compiled = FileDescriptorSet.FromString(target.read_bytes())
    pool = DescriptorPool()
    for file in compiled.file:
        pool.Add(file)
    found: dict[str, Any] = {}
    todo = [message for name in files for message in pool.FindFileByName(name).message_types_by_name.values()]
    while todo:
        message = todo.pop()
        found[message.full_name] = GetMessageClass(message)
        todo += message.nested_types
    return found
