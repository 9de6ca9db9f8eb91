// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// The ways in which a crash treats what was not synced. CrashClone takes them in
// turn as the seed grows.
const (
	loseAll   = iota // nothing unsynced survives
	loseHalf         // each write survives or not
	tearLast         // all survive up to one, which is torn
	scatter          // each sector survives or not, in any order
	crashWays        // how many there are
)

// CrashClone returns the disk that a power cut at this moment would leave. The
// seed decides which of the unsynced changes survive: seed%4 chooses between
// none, some writes, all up to one that is torn, and some sectors; the rest
// chooses which. The original is not changed and stays usable.
func (m *Mem) CrashClone(seed uint64) *Mem {
	way := int(seed % crashWays)
	rng := rand.New(rand.NewPCG(seed, 0x7472696167656d71))

	names, entries, dirs := m.snapshot()
	crashNames(names, entries, way, rng)

	c := NewMem()
	c.dirs, c.quota = dirs, m.quota.clone()
	for _, name := range slices.Sorted(maps.Keys(names)) { // sorted: the seed decides, not the map
		f := &inode{dirty: make(map[int]bool), quota: c.quota}
		f.now = names[name].crash(way, rng)
		f.charged = (f.now.size + pageSize - 1) / pageSize * pageSize
		c.quota.used += f.charged
		f.synced = f.now.clone()
		c.names[name], c.synced[name] = f, f
	}
	return c
}

// crashNames applies to names the entries that survive. An entry that has the
// name or file of an earlier, lost entry is lost too: no file system reorders
// those.
func crashNames(names map[string]*inode, entries []entry, way int, rng *rand.Rand) {
	cut := rng.IntN(len(entries) + 1)
	lostNames, lostFiles := make(map[string]bool), make(map[*inode]bool)
	for i, e := range entries {
		var keep bool
		switch way {
		case loseAll:
		case tearLast:
			keep = i < cut
		default:
			keep = rng.IntN(2) == 0
		}
		if !keep || lostNames[e.from] || lostNames[e.to] || lostFiles[e.file] {
			lostNames[e.from], lostNames[e.to], lostFiles[e.file] = true, true, true
			delete(lostNames, "")
			continue
		}
		e.apply(names)
	}
}

// crash returns what is left of the file.
func (f *inode) crash(way int, rng *rand.Rand) pages {
	f.mu.Lock()
	defer f.mu.Unlock()
	left, own := f.synced.clone(), make(map[int]bool)
	unsynced := slices.Concat(f.failed, f.writes)
	cut := rng.IntN(len(unsynced) + 1)
	for i, w := range unsynced {
		switch {
		case way == loseAll, way == tearLast && i > cut, way == loseHalf && rng.IntN(2) == 0:
		case way == tearLast && i == cut, way == scatter:
			left.tear(w, own, way, rng)
		default:
			left.apply(w, own)
		}
	}
	return left
}

func (p *pages) apply(w write, own map[int]bool) {
	if w.data == nil {
		p.resize(w.off, own)
		return
	}
	p.set(w.off, w.data, own)
}

// tear applies some sectors of w: a leading part, or a scattering.
func (p *pages) tear(w write, own map[int]bool, way int, rng *rand.Rand) {
	if w.data == nil {
		if rng.IntN(2) == 0 {
			p.apply(w, own)
		}
		return
	}
	sectors := int((w.off+int64(len(w.data))-1)/sectorSize - w.off/sectorSize + 1)
	cut := rng.IntN(sectors)
	for i, data, off := 0, w.data, w.off; len(data) > 0; i++ {
		n := min(len(data), sectorSize-int(off%sectorSize))
		if way == tearLast && i < cut || way == scatter && rng.IntN(2) == 0 {
			p.set(off, data[:n], own)
		}
		data, off = data[n:], off+int64(n)
	}
}
