"""The `baton` command: parses arguments and runs one command, a module imported on demand.

Exit codes: 0 success, 1 failure, 2 invalid arguments or configuration.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

from sidecar.cli.arguments import add_address, add_command, count, text
from sidecar.cli.job_arguments import add_job_commands

_DESCRIPTION = """\
Baton lets an app run on many pods with zero coordination code. One sidecar sits next to each
replica; through Postgres the sidecars elect leaders and run the app's singletons and schedules
once across the cluster, calling back into the app over gRPC.
"""

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command."""
    options = _parser().parse_args(arguments)
    # gRPC's C core writes its own lines to stderr; it reads this at its first import.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if isinstance(sys.stdout, TextIOWrapper):
        # As for stderr: characters that the terminal's encoding lacks are escaped.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = int(import_module(f"sidecar.cli.{options.module}").main(options))
        if sys.stdout:  # None: it was closed from the start
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _unwritten(error)
    return code


def _unwritten(error: OSError) -> int:
    """Stdout is closed or the disk is full: drop the rest, so that the exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not isinstance(error, BrokenPipeError):
        print(f"baton: {error.strerror or error}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="baton",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"baton {version('baton-sidecar')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = add_command(commands, "run", "run the sidecar")
    _config(run)
    check = add_command(commands, "check", "check a configuration; prints nothing if it is valid")
    check.add_argument(
        "--connect", action="store_true", help="also check the database; changes nothing"
    )
    _config(check)
    migrate = add_command(commands, "migrate", "bring the tables in Postgres up to date")
    _config(migrate)

    preview = add_command(commands, "preview", "show when a cron expression fires")
    preview.add_argument("expression", metavar="EXPR", help="such as '0 2 * * *' or '@daily'")
    preview.add_argument("--timezone", metavar="TZ", default="UTC", help="IANA name (default: UTC)")
    preview.add_argument("--from", dest="start", metavar="RFC3339", help="default: now")
    preview.add_argument(
        "-n", dest="count", metavar="N", default="10", help="how many (default: 10)"
    )

    status = add_command(commands, "status", "show leaders, schedules, singletons and recent runs")
    status.add_argument("--json", action="store_true", help="for machines")
    add_address(status)
    drain = add_command(
        commands, "drain", "hand over all groups and stop campaigning (preStop hook)"
    )
    drain.add_argument("--wait", action="store_true", help="return when this pod leads no group")
    add_address(drain)
    resign = add_command(commands, "resign", "hand over one group, whichever pod leads it")
    resign.add_argument("group", type=text, metavar="GROUP")
    add_address(resign)

    pause = add_command(commands, "pause", "pause a schedule; its ticks are skipped", "schedule")
    pause.add_argument("--note", type=text, default="", metavar="TEXT", help="the reason")
    resume = add_command(commands, "resume", "resume a paused schedule", "schedule")
    trigger = add_command(
        commands, "trigger", "run a schedule now; prints the run's id", "schedule"
    )
    trigger.add_argument("--payload", metavar="TEXT", help="replaces the schedule's payload")
    trigger.add_argument(
        "--request-id",
        type=text,
        default="",
        metavar="ID",
        help="a repeated request with this id returns the same run",
    )
    for action, command in (("pause", pause), ("resume", resume), ("trigger", trigger)):
        command.add_argument("name", type=text, metavar="NAME")
        command.set_defaults(action=action)
        add_address(command)

    runs = add_command(commands, "runs", "list runs, newest first")
    runs.add_argument(
        "name", type=text, nargs="?", metavar="NAME", help="of one schedule or singleton"
    )
    runs.add_argument("--outcome", choices=("succeeded", "failed", "skipped"))
    runs.add_argument("-n", dest="count", type=count, default=20, metavar="N", help="default: 20")
    runs.add_argument("--json", action="store_true", help="for machines")
    add_address(runs)

    add_job_commands(commands)

    deferred = add_command(commands, "deferred", "complete, fail or show a deferred")
    deferred.add_argument("action", choices=("complete", "fail", "get"))
    deferred.add_argument("token", metavar="TOKEN")
    deferred.add_argument("--value", default="", metavar="TEXT", help="the value of `complete`")
    deferred.add_argument("--error", default="", metavar="TEXT", help="the error of `fail`")
    add_address(deferred)

    conformance = add_command(commands, "conformance", "check an app against the contract")
    _app_under_test(conformance)

    demo = add_command(commands, "demo", "run a cluster on this machine, with a failover")
    demo.add_argument("--replicas", type=int, default=3, metavar="N", help="default: 3")
    demo.add_argument("--seconds", type=float, default=45, metavar="N", help="default: 45")
    return parser


def _config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config",
        metavar="FILE",
        help="YAML; every scalar can also be set by the environment, such as BATON_POSTGRES_URL",
    )


def _app_under_test(command: argparse.ArgumentParser) -> None:
    reached = command.add_mutually_exclusive_group(required=True)
    reached.add_argument("--app", type=text, metavar="ADDRESS", help="where the app listens")
    reached.add_argument(
        "--attach", action="store_true", help="wait for the app to attach to --sidecar"
    )
    command.add_argument(
        "--sidecar",
        type=text,
        default="127.0.0.1:9401",
        metavar="ADDRESS",
        help="where the app looks for its sidecar (default: 127.0.0.1:9401)",
    )
    command.add_argument("--token-file", metavar="FILE", help="the token that the app expects")
    command.add_argument(
        "--handler",
        type=text,
        default="",
        metavar="NAME",
        help="a schedule to execute many times",
    )
    command.add_argument(
        "--singleton",
        type=text,
        default="",
        metavar="NAME",
        help="a singleton, whose call stays open",
    )
    command.add_argument(
        "--payload", type=text, default="", metavar="TEXT", help="the payload for the handler"
    )
