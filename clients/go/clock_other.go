//go:build !linux

package baton

import "time"

// clockIsBoottime: readings of the sidecar's boot time cannot be compared with this clock.
const clockIsBoottime = false

var started = time.Now()

// boottime is the monotonic clock, the nearest there is here to a boot time.
func boottime() time.Duration { return time.Since(started) }
