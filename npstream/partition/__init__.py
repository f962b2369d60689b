"""One input partition: its processor, its waiting labels, its proof. Pure."""

from npstream.partition.config import LabelConfig, PartitionConfig
from npstream.partition.processor import PartitionProcessor
from npstream.partition.step import Step

__all__ = ["LabelConfig", "PartitionConfig", "PartitionProcessor", "Step"]
