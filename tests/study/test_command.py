"""`npstream experiment` from the command line."""

import csv
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from npstream.cli import main
from npstream.cli.exits import FAILED, INTERRUPTED, OK, USAGE


@pytest.fixture(autouse=True)
def _no_folder_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call says itself where its data are."""
    monkeypatch.delenv("NPSTREAM_DATA", raising=False)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, output and error output of one call."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["experiment", *args])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "figures"),
    [
        ("streams", 0),
        ("stress", 0),
        ("delays", 0),
        ("inputs", 0),
        ("desk", 0),
        ("banana", 4),
        ("large", 4),
        ("table", 0),
        ("roc", 2),
    ],
)
def test_every_study_runs_with_nothing_at_hand(
    command: str, figures: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--quick` ends with a table or figures, a CSV of numbers, a page, and well-formed SVG files."""
    if command in ("table", "roc"):
        pytest.importorskip("sklearn")
    sets = {"streams": ["--sets", "gmm2"], "delays": ["--sets", "gmm2"], "stress": ["--sets", "flip"]}
    sets["inputs"] = ["--sets", "mixed"]
    code, out, _ = run(capsys, command, "--quick", "--jobs", "1", "--out", str(tmp_path), *sets.get(command, []))

    assert code == OK
    assert f"{command}.html" in out
    assert "<h1>" in (tmp_path / f"{command}.html").read_text()
    numbers = tmp_path / ("table.csv" if command == "roc" else f"{command}.csv")
    assert len(list(csv.DictReader(numbers.open()))) > 0
    drawn = list(tmp_path.glob("*.svg"))
    assert len(drawn) == figures
    for path in drawn:
        ElementTree.fromstring(path.read_text())


def test_second_run_adds_nothing_and_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is taken from the CSV: the file stays as it is, byte for byte, and so does the output."""
    args = ("streams", "--quick", "--sets", "gmm2", "--jobs", "1", "--out", str(tmp_path))
    _, first, _ = run(capsys, *args)
    before = (tmp_path / "streams.csv").read_bytes()
    _, second, _ = run(capsys, *args)

    assert second == first
    assert (tmp_path / "streams.csv").read_bytes() == before


def test_numbers_in_the_file_are_trusted_until_fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed number shows in the next report, and is gone after --fresh: nothing else was run in between."""
    args = ("stress", "--quick", "--sets", "flip", "--jobs", "1", "--out", str(tmp_path), "--json")
    run(capsys, *args)
    path = tmp_path / "stress.csv"
    rows = list(csv.DictReader(path.open()))
    changed = [row | {"fpr_after": "0.5"} for row in rows]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(changed)
    code, out, _ = run(capsys, *args, "--gates")
    assert code == FAILED
    assert [gate["passed"] for gate in json.loads(out)["gates"]] == [False, True]

    code, out, _ = run(capsys, *args, "--gates", "--fresh")
    assert code == OK
    assert [gate["passed"] for gate in json.loads(out)["gates"]] == [True, True]


@pytest.mark.slow
def test_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C after the first rows ends at once, without a traceback; the next run keeps those rows as they are."""
    path, args = tmp_path / "stress.csv", ["stress", "--sets", "imb01", "--jobs", "2", "--out", str(tmp_path)]
    program = "from npstream.cli import main; import sys; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "experiment", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for_rows(path, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    kept = path.read_text()
    run(capsys, *args)

    assert process.returncode == INTERRUPTED
    assert "Traceback" not in err
    assert 1 < kept.count("\n") < path.read_text().count("\n")
    assert path.read_text().startswith(kept)


def wait_for_rows(path: Path, process: "subprocess.Popen[str]") -> None:
    """Until the first row is on disk; fails when the process ends before or two minutes pass."""
    end = time.monotonic() + 120
    while not path.exists() or path.read_text().count("\n") < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no row within two minutes"
        time.sleep(0.02)


def test_failed_gates_are_reported_without_the_flag_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --gates the verdict is printed and the exit code stays 0."""
    args = ("stress", "--quick", "--sets", "scalejump", "--jobs", "1", "--out", str(tmp_path))
    code, out, _ = run(capsys, *args)

    assert code == OK
    assert "scalejump, FPR/tau" in out
    assert "PASS  budget" in out


def test_gates_that_cannot_be_checked_do_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--gates over runs that no gate speaks of is an error, not a silent success."""
    args = ("delays", "--quick", "--sets", "gmm2", "--jobs", "1", "--out", str(tmp_path), "--gates")
    code, _, err = run(capsys, *args)

    assert code == USAGE
    assert "none applies to what was run" in err


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints nothing but JSON, with means of every method and the gates."""
    code, out, err = run(
        capsys, "streams", "--quick", "--sets", "gmm2", "--jobs", "1", "--out", str(tmp_path), "--json"
    )
    found = json.loads(out)

    assert (code, err) == (OK, "")
    assert set(found["means"]["0.1"]) == {"plus", "paper", "OLNP", "OLNP+tracker"}
    assert isinstance(found["gates"], list)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("streams", "--data", "ABSENT"), "is not a folder; give --data"),
        (("delays", "--data", "EMPTY"), "holds no data set"),
        (("streams", "--sets", "mons"), "no data set named 'mons'"),
        (("banana", "--sets", "gmm8"), "8 features; the figure needs a set with two"),
        (("stress", "--sets", "banana"), "no data set named 'banana'"),
    ],
)
def test_mistakes_get_advice(
    args: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one message, no traceback."""
    places = {"ABSENT": str(tmp_path / "absent"), "EMPTY": str(tmp_path)}
    code, _, err = run(capsys, *(places.get(arg, arg) for arg in args), "--out", str(tmp_path / "out"))

    assert code == USAGE
    assert message in err
    assert "Traceback" not in err


def test_help_of_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """Each study shows one call that can be copied."""
    for command in ("table", "roc", "banana", "large", "streams", "stress", "delays", "inputs", "tiers", "desk"):
        code, out, _ = run(capsys, command, "--help")
        assert code == OK
        assert f"npstream experiment {command}" in out.split("Example:")[1]


@pytest.mark.slow
def test_reference_streams_hold_their_rate(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On three whole real sets the false-positive rate stays within the bars at every rate that can be judged."""
    sets = [word for name in ("banana", "mammography", "weather") for word in ("--sets", name)]
    code, out, _ = run(capsys, "streams", "--data", str(data_dir), *sets, "--out", str(tmp_path), "--json", "--gates")
    gates = json.loads(out)["gates"]

    assert [gate["passed"] for gate in gates] == [True] * 5
    assert code == OK


@pytest.mark.slow
def test_sets_cut_short_are_not_judged(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A quick look at reference sets shows figures without bars and checks no gate."""
    _, out, _ = run(capsys, "streams", "--quick", "--data", str(data_dir), "--out", str(tmp_path), "--json")

    assert json.loads(out)["gates"] == []
