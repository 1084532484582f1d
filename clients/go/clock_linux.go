package baton

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockIsBoottime: readings of the sidecar's boot time can be compared with this clock.
const clockIsBoottime = true

// boottime is the time since boot, suspended time included: trust ends while the machine sleeps too.
func boottime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("baton: CLOCK_BOOTTIME cannot be read: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(now.Nano())
}
