"""Bugs of one token: which there are, and that the copy they are planted in is the program."""

from tests.system.random_mutants import ROOT, changes, draw

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
