// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"testing/fstest"
)

func TestLinuxMemory(t *testing.T) {
	const meminfo = "MemTotal:        8000000 kB\nMemFree: 1 kB\n"
	tests := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, 0},
		{"the machine", map[string]string{"proc/meminfo": meminfo}, 8000000 << 10},
		{"version 2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/system.slice/triagemq.service\n",
			"sys/fs/cgroup/system.slice/triagemq.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "536870912\n",
		}, 512 << 20},
		{"version 2, in a container", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		{"version 1", map[string]string{
			"proc/meminfo":     meminfo,
			"proc/self/cgroup": "5:devices:/a\n4:cpu,memory:/docker/12ab\n0::/\n",
			"sys/fs/cgroup/memory/docker/12ab/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":             "9223372036854771712\n",
		}, 1 << 30},
		{"version 1, the path of the host", map[string]string{
			"proc/self/cgroup": "4:memory:/docker/12ab\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
		}, 1 << 30},
		{"no limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 8000000 << 10},
		{"nonsense", map[string]string{
			"proc/meminfo": "MemTotal: much\n", "proc/self/cgroup": "what\n0::../../x\n", "sys/fs/cgroup/memory.max": "-5\n",
		}, 0},
	}
	for _, tt := range tests {
		root := fstest.MapFS{}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := linuxMemory(root); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

func TestMemoryOfThisProcess(t *testing.T) {
	if got := Memory(); got < 0 || got > 0 && got < 1<<20 {
		t.Errorf("this process may use %d bytes", got)
	}
}
