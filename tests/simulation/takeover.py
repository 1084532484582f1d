"""One fault at a time hits a settled leader: how long until the next app is told (G8)?"""

from dataclasses import dataclass

from tests.simulation.cluster import Cluster, Parts
from tests.simulation.runners import Runner
from tests.simulation.scenario import bury, logs_to
from tests.simulation.world import Way, World

FAULTS = ("resign", "stop", "crash", "host_crash", "freeze", "partition", "app_dies", "app_hangs")
CLEAN = ("resign", "stop")
_FORMING_SECONDS = 12.0
_GROUP = "default"


@dataclass(frozen=True, slots=True)
class Takeover:
    """Seconds from the fault, or from a clean release, to OnBecomeLeader in the next app."""

    seed: int
    fault: str
    seconds: float
    violations: tuple[str, ...]


def measure(seed: int) -> Takeover:
    """Hit the leader once, at a moment and in a way that the seed decides."""
    world = World(seed)
    fault = FAULTS[seed % len(FAULTS)]
    with logs_to(world):
        cluster = Cluster(world, Parts())
        cluster.server.stumble_probability = 0.0
        cluster.hint_loss = 0.0  # A lost hint costs one poll; that is not the bound tested here.
        for runner in cluster.runners:
            world.after(world.between((0.0, 1.0)), runner.start)
        world.after(1.0, cluster.judge.watch)
        world.loop.run_for(_FORMING_SECONDS + world.random.random())
        seconds = _hit(cluster, fault)
        bury(cluster)
    return Takeover(seed, fault, seconds, tuple(world.violations))


def _hit(cluster: Cluster, fault: str) -> float:
    world, leader = cluster.world, cluster.leader(_GROUP)
    if leader is None:
        world.violated("G8: nobody leads a cluster that nothing happened to")
        return 0.0
    server, group_id = cluster.server, cluster.groups[_GROUP]
    world.after(0.0, _strike, cluster, leader, fault)
    world.loop.run_for(0.0)
    from_at = world.now
    if fault in CLEAN:
        world.loop.run_for(30.0, lambda: server.rows[group_id].clean)
        from_at = world.now
    world.loop.run_for(30.0, lambda: _next_leader(cluster, leader))
    return world.now - from_at


def _next_leader(cluster: Cluster, old: Runner) -> bool:
    return any(_GROUP in r.app.beliefs for r in cluster.runners if r is not old)


def _strike(cluster: Cluster, leader: Runner, fault: str) -> None:
    match fault:
        case "resign":
            cluster.server.resign_requests.update(
                {g: row.epoch for g, row in cluster.server.rows.items()}
            )
        case "stop":
            leader.stop()
        case "crash" | "host_crash":
            leader.crash(server_notices=fault == "crash")
        case "freeze":
            leader.process.freeze()
        case "partition":
            for link in leader.links:
                link.black_holes |= {Way.OUT, Way.BACK}
        case "app_dies":
            leader.app.stop()
        case "app_hangs":
            leader.app.fail_checks(hang=True)
