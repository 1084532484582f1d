"""The settings of the types of the model: all fields are declared, and a file has one digest."""

from dataclasses import dataclass, fields

import pytest

from sidecar.config import kinds
from sidecar.config.declare import Declaration, declarations, describe
from sidecar.model.definitions import Retry, Schedule, Singleton, State
from sidecar.scheduling.config_sync import Declared

WHOLE = Declaration("scalar", "A number.", kinds.Whole(1, 2))


@dataclass(frozen=True)
class Section:
    one: int = 1
    two_seconds: int = 2


@pytest.mark.parametrize(
    "settings", [{"one": WHOLE}, {"one": WHOLE, "two_seconds": WHOLE, "three": WHOLE}]
)
def test_a_field_without_its_declaration_is_noticed(settings: dict[str, Declaration]) -> None:
    with pytest.raises(TypeError, match="Section"):
        describe(Section, **settings)


def test_keys_and_order_are_those_of_the_type() -> None:
    describe(Section, two_seconds=WHOLE, one=WHOLE)
    assert [key for key, _, _ in declarations(Section)] == ["one", "two"]


@pytest.mark.parametrize("section", [Schedule, Singleton, Retry, State])
def test_every_field_of_the_model_can_be_configured(section: type[Schedule]) -> None:
    declared = [field.name for _, field, _ in declarations(section)]
    assert declared == [field.name for field in fields(section)]


def test_the_digest_of_a_file_is_that_of_the_releases_before() -> None:
    """Else two releases that share a database take the same file for two."""
    schedules = [
        Schedule(
            name="a",
            cron="* * * * *",
            ping_url="http://x",
            state=State(version=2, initial={"a": 1}),
            retry=Retry(5),
        ),
        Schedule(name="b", every_seconds=1.0),
    ]
    expected = "d3217575d2ac21d0a72089ad78d5aeb9d4366d9b457441a6fe4829b9e81c16d8"
    assert Declared.of(schedules, 3).digest == expected
