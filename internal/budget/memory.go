// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Memory returns how much memory the process may use: what GOMEMLIMIT says, or
// what its control groups allow, or what the machine has, whichever is least.
// Zero means that it is unknown.
func Memory() int64 {
	least := debug.SetMemoryLimit(-1) // reads the limit, sets nothing
	if n := systemMemory(); n > 0 {
		least = min(least, n)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// linuxMemory returns what the control groups of a process on Linux allow, or
// what the machine has if that is less; zero if neither is known. root is the
// root of the file system.
func linuxMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	if n := totalMemory(root); n > 0 {
		least = n
	}
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		groups = nil // there are none, then
	}
	for line := range strings.Lines(string(groups)) {
		// number:controllers:path, and in version 2 no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[1] == "":
			least = min(least, groupLimit(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			least = min(least, groupLimit(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// groupLimit returns the least limit of a group and those above it. Inside a
// container the group's path may be the path on the host, which does not exist
// there; then the root is the group.
func groupLimit(root fs.FS, mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(mount, at, file))
		if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 {
			least = min(least, n) // without a limit it says "max", or a number beyond all memory
		}
		if at == "/" {
			return least
		}
	}
}

// totalMemory returns what /proc/meminfo says that the machine has; zero if it does
// not.
func totalMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}
