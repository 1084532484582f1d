"""The phases of a group: every move of the table happens, every other one raises."""

import ast
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from sidecar.model.election_group import _MOVES, Group, IllegalMove
from sidecar.model.election_types import Done, Phase
from sidecar.model.term import LossReason
from tests.unit.election_driver import TERM, Driver, G

_REPOSITORY = Path(__file__).parents[2]
_LEGAL = {(before, after) for before, afters in _MOVES.items() for after in afters}
_ILLEGAL = [move for move in product(Phase, Phase) if move not in _LEGAL]


def _acquire(driver: Driver) -> None:
    driver.polled(locked=True)


def _stop_as_candidate(driver: Driver) -> None:
    _acquire(driver)
    driver.election.stop(driver.now)


def _disconnect_as_candidate(driver: Driver) -> None:
    _acquire(driver)
    driver.election.disconnected(driver.now)


def _refuse_to_become(driver: Driver) -> None:
    driver.take_over()
    driver.election.become_finished(TERM, False, driver.now)


def _resign(driver: Driver) -> None:
    driver.lead()
    driver.election.resign(G, LossReason.RESIGNED, driver.now)


def _disconnect_as_leader(driver: Driver) -> None:
    driver.lead()
    driver.election.disconnected(driver.now)


def _finish_work(driver: Driver) -> None:
    _resign(driver)
    driver.election.work_finished(TERM, driver.now)


def _acknowledge_loss(driver: Driver) -> None:
    _finish_work(driver)
    driver.election.lose_finished(TERM, True, driver.now)


def _acknowledge_loss_without_lock(driver: Driver) -> None:
    _disconnect_as_leader(driver)
    driver.election.lose_finished(TERM, True, driver.now)


def _release(driver: Driver) -> None:
    _acknowledge_loss(driver)
    driver.answer(Done())


# The last move of each scenario.
_SCENARIOS: dict[tuple[Phase, Phase], Callable[[Driver], None]] = {
    (Phase.STANDBY, Phase.CANDIDATE): _acquire,
    (Phase.CANDIDATE, Phase.BECOMING): Driver.take_over,
    (Phase.CANDIDATE, Phase.RELEASING): _stop_as_candidate,
    (Phase.CANDIDATE, Phase.STANDBY): _disconnect_as_candidate,
    (Phase.BECOMING, Phase.LEADING): Driver.lead,
    (Phase.BECOMING, Phase.LOSING): _refuse_to_become,
    (Phase.LEADING, Phase.DRAINING): _resign,
    (Phase.LEADING, Phase.LOSING): _disconnect_as_leader,
    (Phase.DRAINING, Phase.LOSING): _finish_work,
    (Phase.LOSING, Phase.RELEASING): _acknowledge_loss,
    (Phase.LOSING, Phase.STANDBY): _acknowledge_loss_without_lock,
    (Phase.RELEASING, Phase.STANDBY): _release,
}


def _name(move: tuple[Phase, Phase]) -> str:
    return f"{move[0].value}-{move[1].value}"


def test_every_phase_has_its_moves_and_every_move_has_a_scenario() -> None:
    assert set(_MOVES) == set(Phase)
    assert set(_SCENARIOS) == _LEGAL


@pytest.mark.parametrize("move", _SCENARIOS, ids=_name)
def test_the_election_makes_each_legal_move(
    move: tuple[Phase, Phase], monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: list[tuple[Phase, Phase]] = []
    move_to = Group.move_to

    def recorded(group: Group, phase: Phase) -> None:
        moves.append((group.phase, phase))
        move_to(group, phase)

    monkeypatch.setattr(Group, "move_to", recorded)
    _SCENARIOS[move](Driver())
    assert moves[-1] == move


@pytest.mark.parametrize("move", _ILLEGAL, ids=_name)
def test_an_illegal_move_raises_and_changes_nothing(move: tuple[Phase, Phase]) -> None:
    before, after = move
    group = Group("default", G, phase=before)
    with pytest.raises(IllegalMove, match=f"group default: {before.value} -> {after.value}"):
        group.move_to(after)
    assert group.phase is before


def test_only_move_to_assigns_a_phase() -> None:
    """In the sidecar and in the simulation, whose planted bugs follow the table too."""
    found = []
    for folder in ("sidecar", "tests"):
        for path in sorted((_REPOSITORY / folder).rglob("*.py")):
            found += [
                (path.relative_to(_REPOSITORY).as_posix(), function)
                for function in _assigning_functions(ast.parse(path.read_text()))
            ]
    assert found == [("sidecar/model/election_group.py", "move_to")]


def _assigning_functions(tree: ast.Module) -> list[str]:
    """The functions that assign to an attribute `phase`, or set it by its name."""
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [f.name for f in functions if any(_assigns_phase(node) for node in ast.walk(f))]


def _assigns_phase(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="phase", ctx=ast.Store()):
            return True
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value="phase"), _]):
            return True
    return False
