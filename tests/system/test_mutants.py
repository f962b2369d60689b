"""The four bugs that matter most are caught; `make mutants` does the same for all that are listed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.broker import Kafka
from tests.system import stories
from tests.system.mutants import MUTANTS
from tests.system.oracle import Different

STORIES: dict[str, Callable[..., object]] = {
    "read_uncommitted": partial(stories.zombie, point="after_send_offsets"),
    "never_joined_metadata": partial(stories.zombie, point="before_send_offsets"),
    "offsets_while_replaying": stories.killed_while_replaying,
    "batch_not_split": stories.killed_while_replaying,
}


@pytest.mark.parametrize("mutant", STORIES)
def test_the_story_catches_the_mutant(kafka: Kafka, tmp_path: Path, mutant: str) -> None:
    """With the bug the very story that passes without it ends in a difference of the expected kind."""
    with pytest.raises(Different, match=MUTANTS[mutant].says):
        STORIES[mutant](kafka.bootstrap, tmp_path, mutant=mutant)
