package main

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// files makes a file system of texts.
func files(texts map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range texts {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestFreeMemory(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:          100 kB\nMemAvailable:   1000 kB\n"
	tests := []struct {
		name string
		root map[string]string
		want uint64
	}{
		{"nothing tells", nil, 0},
		{"the system", map[string]string{"proc/meminfo": meminfo}, 1000 << 10},
		{"an old kernel", map[string]string{"proc/meminfo": "MemFree: 100 kB\n"}, 0},
		{"no limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n",
		}, 1000 << 10},
		{"a group", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "900000\n", "sys/fs/cgroup/a/b/memory.current": "500000\n",
			"sys/fs/cgroup/a/b/memory.stat": "anon 1\nactive_file 200000\ninactive_file 50000\ninactive_anon 7\n",
		}, 650000},
		{"an outer group", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "900000\n", "sys/fs/cgroup/a/memory.current": "899999\n",
			"sys/fs/cgroup/a/b/memory.max": "800000\n", "sys/fs/cgroup/a/b/memory.current": "0\n",
		}, 1},
		{"a container that sees the host's path", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/system.slice/docker-1\n",
			"sys/fs/cgroup/memory.max": "700000\n", "sys/fs/cgroup/memory.current": "100000\n",
		}, 600000},
		{"use above the limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "7\n", "sys/fs/cgroup/memory.current": "9\n",
		}, 0},
		{"version 1", map[string]string{
			"proc/meminfo":     meminfo,
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/c\n",
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes":   "500000\n",
			"sys/fs/cgroup/memory/c/memory.usage_in_bytes":   "300000\n",
			"sys/fs/cgroup/memory/c/memory.stat":             "active_file 9\ntotal_active_file 1000\ntotal_inactive_file 99000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":     "400000\n",
			"sys/fs/cgroup/cpu,cpuacct/x/memory.limit_bytes": "1\n",
		}, 300000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := freeMemory(files(test.root)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestPhysicalCores(t *testing.T) {
	root := map[string]string{}
	for cpu, core := range []string{"0/0", "0/1", "1/0", "1/1", "0/0", "0/1"} { // package/core
		folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", cpu)
		root[folder+"physical_package_id"] = core[:1] + "\n"
		root[folder+"core_id"] = core[2:] + "\n"
	}
	tests := []struct {
		name string
		cpus []int
		want int
	}{
		{"all", []int{0, 1, 2, 3, 4, 5}, 4},
		{"two threads of one core", []int{0, 4}, 1},
		{"two packages", []int{0, 2}, 2},
		{"unknown ones", []int{0, 7, 8}, 3},
		{"none", nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := physicalCores(files(root), test.cpus); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestThisMachine(t *testing.T) {
	if got := thisMachine(files(nil)); got.cores < 1 || got.memory != 0 {
		t.Errorf("got %+v, want a core or more and no memory", got)
	}
}
