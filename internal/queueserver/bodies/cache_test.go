// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"testing"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

func text(s string) *message.Message {
	d := message.Draft{Body: []byte(s)}
	return d.Message()
}

func cacheRef(at uint64, m *message.Message) queue.Ref {
	return queue.Ref{At: at, Size: uint32(m.Size())}
}

func TestCacheKeepsABodyForItsReferences(t *testing.T) {
	c := NewCache(1 << 20)
	m := text("a")
	ref := cacheRef(100, m)
	if c.Get(ref) != nil {
		t.Fatal("an empty cache had a body")
	}
	c.Put(ref, m, 2)
	c.Drop(ref)
	if c.Get(ref) != m {
		t.Fatal("the body was removed although one reference is left")
	}
	c.Drop(ref)
	if c.Get(ref) != nil || c.size != 0 {
		t.Fatalf("still there without references; %d bytes counted", c.size)
	}
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	m := text("some body")
	c := NewCache(100 * m.Size())
	for at := uint64(1); at <= 10_000; at++ {
		c.Put(cacheRef(at*300, m), m, 1)
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
	c := NewCache(64 << 20)
	for at := uint64(1); at <= 1<<17; at++ { // four times the places
		m := text("x")
		ref := cacheRef(at*304, m)
		c.Put(ref, m, 1)
		if c.Get(ref) != m {
			t.Fatalf("body %d is not there right after it was put", at)
		}
		if old := cacheRef((at/2)*304, m); at > 1 && c.Get(old) == m {
			t.Fatalf("body %d is shown as %d", at, at/2)
		}
	}
}

func TestCacheTakesNoGiant(t *testing.T) {
	m := text(string(make([]byte, 1000)))
	c := NewCache(4000)
	c.Put(cacheRef(8, m), m, 1)
	if c.Get(cacheRef(8, m)) != nil {
		t.Fatal("a body of a quarter of the cache was taken")
	}
}
