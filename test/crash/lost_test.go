// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/vfs"
)

// sendOne sends one message and waits until it is safe.
func (n *node) sendOne(t *testing.T, name, id string) {
	t.Helper()
	s, err := n.OpenSender(name, broker.SenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	s.Send([]*message.Message{compose(id, 4)}, func(err error) { answer <- err })
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
}

// A13: a broker that has freed parts of its log is killed, and then loses every
// manifest. Repair finds the last one in the log, the shards start from the
// snapshots that it names, and every message is there.
func TestLostManifestLosesNoMessage(t *testing.T) {
	disk := vfs.NewMem()
	n, err := open(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	for round := 0; ; round++ { // until the first segments are freed
		for i := range 400 {
			n.sendOne(t, queues[i%len(queues)], fmt.Sprintf("gone-%d-%d", round, i))
		}
		if _, err := n.drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		names, err := disk.List(".")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(names, "0000000001.seg") {
			break
		}
		if round == 50 {
			t.Fatalf("nothing was freed in %d rounds: %v", round, names)
		}
	}
	want := make(map[string]bool)
	for i := range 200 {
		id := fmt.Sprint("message-", i)
		n.sendOne(t, queues[i%len(queues)], id)
		want[id] = true
	}
	killed := disk.CrashClone(0)
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"MANIFEST", "MANIFEST.copy"} {
		if err := killed.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, started, err := drainAll(t.Context(), killed); err == nil || started {
		t.Fatalf("a broker started without a manifest: %v", err)
	}
	done, err := repair.Repair(killed, repair.DropDamaged)
	if err != nil || len(done.Dropped) > 0 {
		t.Fatalf("repair: %+v, %v, want nothing dropped", done, err)
	}
	got, _, err := drainAll(t.Context(), killed)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		if !want[f.id] {
			t.Errorf("message %q was delivered, which was settled or never sent", f.id)
		}
		delete(want, f.id)
	}
	if len(want) > 0 {
		t.Errorf("%d of 200 messages are lost", len(want))
	}
}
