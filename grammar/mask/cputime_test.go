//go:build !linux

package mask

import "time"

var cpuTimeBase = time.Now()

// cpuTime is the time that has passed.
func cpuTime() time.Duration { return time.Since(cpuTimeBase) }
