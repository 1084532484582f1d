/**
 * The clock on which trust is measured: it goes on while the machine sleeps.
 *
 * Node offers no clock_gettime. On Linux `os.uptime` reads CLOCK_BOOTTIME through /proc/uptime, cut off
 * to 10 ms; elsewhere the monotonic clock stands in, and readings of the sidecar's boot time cannot be
 * compared with it.
 */
import { uptime } from "node:os";

/** Milliseconds; never later than the truth, and behind it by less than `RESOLUTION_MS`. */
export type Clock = () => number;

export const IS_BOOTTIME = process.platform === "linux";
export const RESOLUTION_MS = 10;

export const boottime: Clock = IS_BOOTTIME ? () => uptime() * 1000 : () => performance.now();
