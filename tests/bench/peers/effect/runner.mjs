// A runner of Effect cluster with its Postgres storage and one singleton.
//
//   node runner.mjs lead PROFILE URL FILE    a line in FILE each time the singleton starts here
//
// BENCH_ADDRESS is the port others reach it at, BENCH_LISTEN the one it listens on. The defaults lock
// shards by advisory locks, which a frozen or cut-off runner keeps; the fast profile uses leases in a
// table instead, with the timers of Baton's own default: a refresh each second, 4 s until expiry.
import { RunnerAddress, Singleton } from "@effect/cluster"
import { NodeClusterSocket, NodeRuntime } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Layer, Option, Redacted } from "effect"
import { appendFileSync } from "node:fs"

const [, , , profile, url, file] = process.argv
const address = (port) => Option.some(RunnerAddress.make("127.0.0.1", Number(port)))

const fast = {
  shardLockDisableAdvisory: true,
  shardLockRefreshInterval: Duration.seconds(1),
  shardLockExpiration: Duration.seconds(4),
  refreshAssignmentsInterval: Duration.millis(500),
  runnerHealthCheckInterval: Duration.seconds(1)
}

const Leader = Singleton.make(
  "leader",
  Effect.sync(() => appendFileSync(file, `${Date.now() / 1000} lead -\n`)).pipe(
    Effect.zipRight(Effect.never)
  )
)

const Cluster = NodeClusterSocket.layer({
  storage: "sql",
  shardingConfig: {
    ...(profile === "fast" ? fast : {}),
    runnerAddress: address(process.env.BENCH_ADDRESS),
    runnerListenAddress: address(process.env.BENCH_LISTEN)
  }
})

Leader.pipe(
  Layer.provide(Cluster),
  Layer.provide(PgClient.layer({ url: Redacted.make(url) })),
  Layer.launch,
  NodeRuntime.runMain
)
