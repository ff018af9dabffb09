package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A machine is what this process may use of the computer.
type machine struct {
	cores  int    // physical ones
	memory uint64 // bytes that are free; 0 when the system does not say
}

// thisMachine looks at the system that root is the root folder of.
func thisMachine(root fs.FS) machine {
	cores := physicalCores(root, affinity())
	return machine{
		// GOMAXPROCS is bounded by the CPU quota of the control group.
		cores:  max(1, min(cores, runtime.GOMAXPROCS(0))),
		memory: freeMemory(root),
	}
}

// affinity lists the logical CPUs that this process may run on.
func affinity() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// physicalCores counts the cores that the logical CPUs belong to. One whose
// core is not known counts as a core.
func physicalCores(root fs.FS, cpus []int) int {
	type core struct{ pkg, id string }
	cores := map[core]bool{}
	for _, cpu := range cpus {
		folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology", cpu)
		id, err := fs.ReadFile(root, path.Join(folder, "core_id"))
		if err != nil {
			cores[core{id: fmt.Sprint("cpu", cpu)}] = true
			continue
		}
		pkg, _ := fs.ReadFile(root, path.Join(folder, "physical_package_id")) // one package if it cannot be read
		cores[core{string(pkg), string(id)}] = true
	}
	return len(cores)
}

// freeMemory is the memory that this process can take without swapping, or
// being killed for it: the least of what the system and the control groups
// leave. It is 0 when nothing tells.
func freeMemory(root fs.FS) uint64 {
	free := uint64(math.MaxUint64)
	if n, err := memAvailable(root); err == nil {
		free = n
	}
	for _, group := range controlGroups(root) {
		if n, err := group.free(root); err == nil {
			free = min(free, n)
		}
	}
	if free == math.MaxUint64 {
		return 0
	}
	return free
}

var errUnknown = errors.New("not told")

// memAvailable is MemAvailable of /proc/meminfo, which counts the page cache
// as free.
func memAvailable(root fs.FS) (uint64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemAvailable:" && fields[2] == "kB" {
			kB, err := strconv.ParseUint(fields[1], 10, 54)
			return kB << 10, err
		}
	}
	return 0, errUnknown
}

// A controlGroup is a folder of a cgroup file system, of version 1 or 2.
type controlGroup struct {
	folder string
	v1     bool
}

// controlGroups lists the groups that bound this process's memory, from its
// own up to the outermost that is visible. Inside a container the path in
// /proc may be the host's, so folders that are not there are left to free.
func controlGroups(root fs.FS) []controlGroup {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var groups []controlGroup
	for line := range strings.Lines(string(text)) {
		// hierarchy number, controllers (none in version 2), path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, v1 := "sys/fs/cgroup", false
		switch {
		case parts[1] == "memory":
			mount, v1 = "sys/fs/cgroup/memory", true
		case parts[1] != "":
			continue
		}
		for own := path.Clean("/" + parts[2]); ; own = path.Dir(own) {
			groups = append(groups, controlGroup{path.Join(mount, own), v1})
			if own == "/" {
				break
			}
		}
	}
	return groups
}

// free is what a group may still take: its limit less its use, of which the
// page cache does not count.
func (g controlGroup) free(root fs.FS) (uint64, error) {
	limitFile, useFile, cacheKeys := "memory.max", "memory.current", []string{"active_file", "inactive_file"}
	if g.v1 {
		limitFile, useFile = "memory.limit_in_bytes", "memory.usage_in_bytes"
		cacheKeys = []string{"total_active_file", "total_inactive_file"}
	}
	limit, err := readNumber(root, path.Join(g.folder, limitFile))
	if err != nil {
		return 0, err // also "max": no limit
	}
	use, err := readNumber(root, path.Join(g.folder, useFile))
	if err != nil {
		return 0, err
	}
	stat, _ := fs.ReadFile(root, path.Join(g.folder, "memory.stat")) // without it all use counts
	for line := range strings.Lines(string(stat)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, k := range cacheKeys {
			if n, err := strconv.ParseUint(value, 10, 64); err == nil && key == k {
				use -= min(n, use)
			}
		}
	}
	return limit - min(use, limit), nil
}

func readNumber(root fs.FS, file string) (uint64, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
