//go:build !race

package mask

// slower is how much longer code takes here than in a program.
const slower = 1
