// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// spoil changes a byte of a text wherever it is on a disk.
func spoil(t *testing.T, disk vfs.FS, text string) {
	t.Helper()
	names, err := disk.List(".")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, name := range names {
		f, err := disk.Open(name)
		if err != nil {
			continue // a directory
		}
		all, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(all, []byte(text)); i >= 0 {
			found = true
			if _, err := f.WriteAt([]byte{'#'}, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatalf("%q is not on the disk", text)
	}
}

// collect is a sink that keeps what it gets.
type collect struct{ ds []broker.Delivery }

func (k *collect) Deliver(ds []broker.Delivery) { k.ds = append(k.ds, ds...) }
func (k *collect) Drained()                     {}
func (k *collect) Ended(error)                  {}

func (k *collect) bodies(t *testing.T) (texts []string) {
	t.Helper()
	for i := range k.ds {
		m, err := k.ds[i].Message()
		if errors.Is(err, broker.ErrMessageNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for data := range m.Data() {
			texts = append(texts, string(data))
		}
	}
	return texts
}

// A damaged body on the disk is an incident of its message. In both modes
// the others are served, the message is a dead letter with the reason, the operator
// is told by a metric, an alert and journal verify, and it is not redriven.
func TestDamagedBodyIsAnIncidentOfItsMessage(t *testing.T) {
	for name, mode := range map[string]broker.Mode{"peek lock": broker.PeekLock, "receive and delete": broker.ReceiveAndDelete} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewMem()
				b, err := brokertest.Open(t.Context(), disk, queueserver.Options{CacheBytes: 1})
				if err != nil {
					t.Fatal(err)
				}
				var told []broker.Alert
				b.OnAlert(func(a broker.Alert) { told = append(told, a) })
				if _, err := b.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
					t.Fatal(err)
				}
				s, err := b.OpenSender("q", broker.SenderOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{"first", "to be damaged", "last"} {
					d := message.Draft{Body: []byte(text)}
					s.Send([]*message.Message{d.Message()}, func(err error) {
						if err != nil {
							t.Errorf("send: %v", err)
						}
					})
				}
				synctest.Wait()
				spoil(t, disk, "to be damaged")

				receive := func(addr string, mode broker.Mode) *collect {
					k := new(collect)
					from, err := b.OpenReceiver(t.Context(), addr, broker.ReceiverOptions{Mode: mode, Sink: k})
					if err != nil {
						t.Fatal(err)
					}
					from.SetDeliveryLimit(10)
					synctest.Wait()
					return k
				}
				if got, want := receive("q", mode).bodies(t), []string{"first", "last"}; !slices.Equal(got, want) {
					t.Fatalf("got %q, want %q", got, want)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got := b.Unreadable(); got != 1 {
					t.Errorf("%d messages were unreadable, want 1", got)
				}
				if len(told) != 1 || told[0].Subject != objective.OfDamage || told[0].Entity != "q" || told[0].To != objective.Missed {
					t.Errorf("alerts: %+v, want one of damage", told)
				}
				if done, err := b.Redrive(t.Context(), "q", broker.Redrive{}); err != nil || done.Moved != 0 || done.Left != 1 {
					t.Errorf("redrive: %+v, %v, want the dead letter to stay", done, err)
				}
				dead := receive("q/$DeadLetterQueue", broker.PeekLock)
				if len(dead.ds) != 1 {
					t.Fatalf("%d dead letters, want 1", len(dead.ds))
				}
				m, err := dead.ds[0].Message()
				if err != nil || !dead.ds[0].Damaged() {
					t.Fatalf("dead letter: %v, damaged %t", err, dead.ds[0].Damaged())
				}
				v, _ := m.Property(message.PropertyDeadLetterReason)
				if got, _ := v.Str(); got != queueserver.ReasonUnreadable {
					t.Errorf("reason %q, want %q", got, queueserver.ReasonUnreadable)
				}
				if v, _ := m.Property(message.PropertyDeadLetterDescription); strings.Contains(v.String(), ".seg") {
					t.Errorf("the description names files: %v", v)
				}
				if err := b.Stop(); err != nil {
					t.Fatal(err)
				}
				if r, err := repair.Verify(disk); !errors.Is(err, journal.ErrCorrupt) || len(r.Problems) == 0 {
					t.Errorf("verify: %v, %v, want it to find the damage", r.Problems, err)
				}
			})
		})
	}
}
