"""The context of a callback as metadata that gRPC accepts."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from sidecar._proto.baton.v1 import callback_pb2
from sidecar.adapters.cluster_context import context_metadata


def test_every_field_has_its_key_and_empty_ones_are_left_out() -> None:
    context = callback_pb2.ClusterContext(
        cluster="orders", runner_id="pod-1-ab", group="default", is_leader=True, epoch=7
    )
    assert context_metadata(context) == (
        ("baton-cluster", "orders"),
        ("baton-runner-id", "pod-1-ab"),
        ("baton-group", "default"),
        ("baton-is-leader", "true"),
        ("baton-epoch", "7"),
    )


@given(st.text(min_size=1))
def test_whatever_the_host_is_called_the_value_is_printable_and_comes_back(name: str) -> None:
    sent = dict(context_metadata(callback_pb2.ClusterContext(runner_id=name)))["baton-runner-id"]
    assert all(0x20 < ord(character) < 0x7F for character in sent)
    assert unquote(sent) == name
