// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"testing"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

func cacheRef(at uint64, m *message.Message) queue.Ref {
	return queue.Ref{At: at, Size: uint32(m.Size())}
}

func TestCacheKeepsABodyForItsReferences(t *testing.T) {
	c := newCache(1 << 20)
	m := text("a")
	ref := cacheRef(100, m)
	if c.get(ref) != nil {
		t.Fatal("an empty cache had a body")
	}
	c.put(ref, m, 2)
	c.drop(ref)
	if c.get(ref) != m {
		t.Fatal("gone although one reference is left")
	}
	c.drop(ref)
	if c.get(ref) != nil || c.size != 0 {
		t.Fatalf("still there without references; %d bytes counted", c.size)
	}
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	m := text("some body")
	c := newCache(100 * m.Size())
	for at := uint64(1); at <= 10_000; at++ {
		c.put(cacheRef(at*300, m), m, 1)
		if c.size > c.limit {
			t.Fatalf("%d bytes, want at most %d", c.size, c.limit)
		}
	}
	kept := 0
	for i := range c.place {
		if c.place[i].msg != nil {
			kept++
		}
	}
	if kept*m.Size() != c.size || kept < 90 {
		t.Fatalf("%d bodies kept, %d bytes counted", kept, c.size)
	}
}

func TestCacheNeverTakesOneBodyForAnother(t *testing.T) {
	c := newCache(64 << 20)
	for at := uint64(1); at <= 1<<17; at++ { // four times the places
		m := text("x")
		ref := cacheRef(at*304, m)
		c.put(ref, m, 1)
		if c.get(ref) != m {
			t.Fatalf("body %d is not there right after it was put", at)
		}
		if old := cacheRef((at/2)*304, m); at > 1 && c.get(old) == m {
			t.Fatalf("body %d is shown as %d", at, at/2)
		}
	}
}

func TestCacheTakesNoGiant(t *testing.T) {
	m := text(string(make([]byte, 1000)))
	c := newCache(4000)
	c.put(cacheRef(8, m), m, 1)
	if c.get(cacheRef(8, m)) != nil {
		t.Fatal("a body of a quarter of the cache was taken")
	}
}
