//go:build race

package mask

// slower is how much longer code takes here: the race detector watches.
const slower = 10
