"""What all sections share: unknown keys are refused, values do not change, attribute docstrings are the reference."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of every section."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Problems(ValueError):
    """Several problems found by one check of a section, each reported with its path below that section."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def refuse(problems: list[str]) -> None:
    """Raise `Problems` when there are any."""
    if problems:
        raise Problems(problems)
