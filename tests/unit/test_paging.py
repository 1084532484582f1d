"""Pages of lists: sizes, and tokens that only their own list accepts."""

import pytest

from sidecar.adapters.grpc_server.paging import checked_size, position_of, token_of
from sidecar.model.errors import InvalidArgument
from tests.lab.pages import ROOT


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (1, 1), (1000, 1000)])
def test_sizes_are_given_up_to_the_most(asked: int, given: int) -> None:
    assert checked_size(asked) == given


@pytest.mark.parametrize("asked", [-1, 1001])
def test_other_sizes_are_refused_as_the_contract_says(asked: int) -> None:
    with pytest.raises(InvalidArgument, match="page_size"):
        checked_size(asked)
    header = (ROOT / "proto/baton/v1/runs.proto").read_text().partition("syntax =")[0]
    assert "more than 1,000 is refused" in header


@pytest.mark.parametrize("last", ["a", "\N{EURO SIGN}/%", "x" * 255])
def test_a_token_leads_back_to_its_place(last: str) -> None:
    assert position_of(token_of(last, "state", "a/"), "state", "a/") == last
    assert token_of("", "state", "a/") == ""
    assert position_of("", "state", "a/") == ""


@pytest.mark.parametrize("token", ["a", "%%%", "YQ==", "\0", token_of("a", "state", "b/")[:-4]])
def test_a_token_that_was_not_given_out_is_refused(token: str) -> None:
    """G11."""
    with pytest.raises(InvalidArgument, match="page_token"):
        position_of(token, "state", "b/")


def test_a_token_of_another_list_is_refused() -> None:
    for listed in (("state", "b/"), ("runs", "a/"), ("state",)):
        with pytest.raises(InvalidArgument, match="page_token"):
            position_of(token_of("a", "state", "a/"), *listed)
