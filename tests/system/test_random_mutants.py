"""Bugs of one token: which there are, which tests are put to them, and how long that is worth something."""

from pathlib import Path

from tests.system.forked import OUTSIDE, Reach
from tests.system.random_mutants import ROOT, Change, Memory, changes, draw

SOURCE = '''"""Less < than."""
def f(a: int, b: int = 2) -> bool:
    return a <= b and "1 < 2" != a  # or b
'''


def test_comparisons_constants_and_words_of_logic_are_changed_and_text_is_not() -> None:
    """One token at a time, each in every way."""
    found = list(changes("f.py", SOURCE))

    assert [(each.line, each.old, each.new) for each in found] == [
        (2, "2", "3"),
        (2, "2", "1"),
        (3, "<=", "<"),
        (3, "<=", ">="),
        (3, "and", "or"),
        (3, "!=", "=="),
    ]
    assert found[4].applied(SOURCE) == SOURCE.replace(" and ", " or ")


def test_a_seed_draws_the_same_changes_again_and_each_can_be_made() -> None:
    """All are of the program as it is, and give another one that compiles."""
    drawn = draw(1, 50)

    assert drawn == draw(1, 50)
    assert len(set(drawn)) == 50
    for change in drawn:
        source = (ROOT / change.file).read_text()
        assert change.applied(source) != source
        compile(change.applied(source), change.file, "exec")


SECONDS = {
    "tests/codec/test_text.py::test_short": 0.1,
    "tests/codec/test_text.py::test_long": 0.5,
    "tests/codec/test_other.py::test_it": 0.2,
    "tests/worker/test_all.py::test_it": 0.1,
    "tests/worker/test_none.py::test_it": 0.1,
}
SHORT, LONG, OTHER, ALL, NONE = SECONDS
REACH = Reach(SECONDS, {"npstream/codec/text.py": {1: {OUTSIDE}, 2: {ALL, OTHER, SHORT}, 3: set(), 4: {LONG}}})


def turns(line: int) -> list[tuple[str, set[str]]]:
    """Which tests are run for a change of this line, in order."""
    return list(REACH.turns("npstream/codec/text.py", line))


def test_the_tests_that_reach_a_line_are_run_its_own_file_first() -> None:
    """Then those of the same room, then the others; none where no test comes by."""
    assert turns(2) == [
        ("tests/codec/test_text.py", {SHORT}),
        ("tests/codec/test_other.py", {OTHER}),
        ("tests/worker/test_all.py", {ALL}),
    ]
    assert turns(4) == [("tests/codec/test_text.py", {LONG})]
    assert turns(3) == []


def test_what_an_import_runs_is_put_to_every_test() -> None:
    """Those that reach anything in its file come first; so it is with a line inside an expression."""
    assert turns(1) == [
        ("tests/codec/test_text.py", {SHORT, LONG}),
        ("tests/codec/test_other.py", {OTHER}),
        ("tests/worker/test_all.py", {ALL}),
        ("tests/worker/test_none.py", {NONE}),
    ]
    assert turns(9) == turns(1)


def test_what_was_tried_counts_while_the_program_and_those_tests_are_the_same(tmp_path: Path) -> None:
    """A survivor is tried again when any test has changed, a killed one when the file that killed it has."""
    for name in ("npstream/codec", "tests/codec"):
        (tmp_path / "copy" / name).mkdir(parents=True)
    for name in SECONDS:
        (tmp_path / "copy" / name.partition("::")[0]).parent.mkdir(exist_ok=True)
        (tmp_path / "copy" / name.partition("::")[0]).write_text("")
    first, survivor = changes("npstream/codec/text.py", "1")

    def memory() -> dict[Change, str | None]:
        return Memory(tmp_path / "cache", tmp_path / "copy").known()

    known = Memory(tmp_path / "cache", tmp_path / "copy")
    known.add(first, SHORT)
    known.add(survivor, None)
    assert memory() == {first: SHORT, survivor: None}
    (tmp_path / "copy/tests/codec/test_other.py").write_text("assert True")
    assert memory() == {first: SHORT}
    (tmp_path / "copy/tests/codec/test_text.py").write_text("assert True")
    assert memory() == {}
    known.add(first, SHORT)
    (tmp_path / "copy/npstream/codec/text.py").write_text("1")
    assert memory() == {}
