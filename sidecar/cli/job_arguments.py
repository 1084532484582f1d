"""The arguments of `baton job`, `baton queue` and `baton dead`."""

import argparse

from sidecar.cli.arguments import (
    add_address,
    add_command,
    count,
    job_id,
    label,
    seconds,
    text,
)

Parsers = argparse._SubParsersAction  # the type that argparse does not name
PRIORITIES = ("critical", "high", "normal", "low")
_STATES = ("queued", "running", "waiting", "ended")
_OUTCOMES = ("succeeded", "failed", "skipped")


def add_job_commands(commands: "Parsers[argparse.ArgumentParser]") -> None:
    _job(_group(commands, "job", "submit, show and change jobs"))
    _queue(_group(commands, "queue", "show, pause and resume queues of jobs"))
    _dead(_group(commands, "dead", "show, replay and discard dead letters: jobs that failed"))


def _job(actions: "Parsers[argparse.ArgumentParser]") -> None:
    submit = _action(actions, "job", "submit", "submit a job; prints its id")
    submit.add_argument("name", type=text, metavar="NAME", help="the handler")
    submit.add_argument("--payload", default="", metavar="TEXT", help="for the handler")
    submit.add_argument("--queue", type=text, default="", metavar="QUEUE")
    submit.add_argument("--priority", choices=PRIORITIES)
    submit.add_argument("--delay", type=seconds, metavar="DURATION", help="due after this time")
    submit.add_argument("--key", type=text, default="", metavar="KEY", help="one at a time")
    submit.add_argument(
        "--unique", type=text, metavar="KEY", help="not if a live job of this name has this key"
    )
    submit.add_argument("--attempts", type=count, metavar="N", help="in all, with the first")
    submit.add_argument("--timeout", type=seconds, metavar="DURATION", help="of one attempt")
    _labels(submit, "attach this label")
    submit.add_argument("--batch", type=text, default="", metavar="BATCH")
    submit.add_argument(
        "--request-id",
        type=text,
        default="",
        metavar="ID",
        help="a repeated request with this id returns the same job",
    )
    get = _action(actions, "job", "get", "show a job with its payload, result and history")
    get.add_argument("job_id", type=job_id, metavar="ID")
    get.add_argument(
        "--wait", type=seconds, metavar="DURATION", help="until it has ended; at most 60s"
    )
    listed = _action(actions, "job", "list", "list jobs, newest first")
    _filters(listed, live=True)
    listed.add_argument("--outcome", choices=_OUTCOMES)
    _count(listed)
    cancel = _action(actions, "job", "cancel", "cancel jobs, by their ids or all that match")
    _selection(cancel, live=True)
    cancel.add_argument("--note", type=text, default="", metavar="TEXT", help="the reason")
    retry = _action(actions, "job", "retry", "make a job that waits for its next attempt due now")
    retry.add_argument("job_id", type=job_id, metavar="ID")
    watch = _action(actions, "job", "watch", "show each change of a job until it has ended")
    watch.add_argument("job_id", type=job_id, metavar="ID")


def _queue(actions: "Parsers[argparse.ArgumentParser]") -> None:
    _action(actions, "queue", "list", "list the queues with their depth and limits")
    pause = _action(actions, "queue", "pause", "stop starting jobs of a queue, on all pods")
    pause.add_argument("queue", type=text, metavar="QUEUE")
    pause.add_argument("--note", type=text, default="", metavar="TEXT", help="the reason")
    resume = _action(actions, "queue", "resume", "start jobs of a paused queue again")
    resume.add_argument("queue", type=text, metavar="QUEUE")


def _dead(actions: "Parsers[argparse.ArgumentParser]") -> None:
    listed = _action(actions, "dead", "list", "list dead letters, newest first")
    _filters(listed, live=False)
    _count(listed)
    show = _action(actions, "dead", "show", "show a dead letter with its payload and errors")
    show.add_argument("job_id", type=job_id, metavar="ID")
    for name, help_ in (
        ("replay", "queue dead letters again, by their ids or all that match"),
        ("discard", "remove dead letters, by their ids or all that match"),
    ):
        action = _action(actions, "dead", name, help_)
        _selection(action, live=False)
        action.add_argument("--dry-run", action="store_true", help="only count")


def _group(
    commands: "Parsers[argparse.ArgumentParser]", name: str, help_: str
) -> "Parsers[argparse.ArgumentParser]":
    group = add_command(commands, name, help_)
    return group.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")


def _action(
    actions: "Parsers[argparse.ArgumentParser]", group: str, name: str, help_: str
) -> argparse.ArgumentParser:
    action = add_command(actions, name, help_, group)
    action.add_argument("-o", dest="output", choices=("table", "json"), default="table")
    add_address(action)
    return action


def _count(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-n", dest="count", type=count, default=20, metavar="N", help="default: 20"
    )


def _labels(command: argparse.ArgumentParser, help_: str) -> None:
    command.add_argument(
        "--label", dest="labels", type=label, action="append", default=[], metavar="K=V", help=help_
    )


def _selection(command: argparse.ArgumentParser, *, live: bool) -> None:
    command.add_argument("job_ids", type=job_id, nargs="*", metavar="ID")
    _filters(command, live=live)


def _filters(command: argparse.ArgumentParser, *, live: bool) -> None:
    command.add_argument("--name", type=text, default="", metavar="NAME", help="of this handler")
    command.add_argument("--queue", type=text, default="", metavar="QUEUE")
    command.add_argument("--key", type=text, default="", metavar="KEY")
    command.add_argument("--batch", type=text, default="", metavar="BATCH")
    _labels(command, "with this label")
    if live:
        command.add_argument("--state", choices=_STATES)
    else:
        command.add_argument(
            "--error", type=text, default="", metavar="TEXT", help="whose last error contains this"
        )
