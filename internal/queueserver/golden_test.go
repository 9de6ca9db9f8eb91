// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// oldStore is a journal with the records that an earlier version wrote.
type oldStore struct {
	segmentSize uint64
	records     []journal.Record
	digests     []string // of the queue and of its dead letters
}

func readOldStore(t *testing.T, name string) *oldStore {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := new(oldStore)
	lines := bufio.NewScanner(f)
	lines.Scan()
	if _, err := fmt.Sscan(lines.Text(), &s.segmentSize); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "digest" {
			s.digests = words[1:]
			return s
		}
		var rec journal.Record
		if _, err := fmt.Sscan(words[0], &rec.At); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rec.Payload, err = hex.DecodeString(words[1]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.records = append(s.records, rec)
	}
	t.Fatalf("%s has no digest", name)
	return nil
}

func (s *oldStore) Claim(_ context.Context, shards ...journal.Shard) ([]journal.Claim, iter.Seq2[journal.Record, error], error) {
	return []journal.Claim{{Shard: shards[0], Epoch: 9, SegmentSize: s.segmentSize, MaxGroup: int(s.segmentSize)}}, func(yield func(journal.Record, error) bool) {
		for _, rec := range s.records {
			if !yield(rec, nil) {
				return
			}
		}
	}, nil
}

func (s *oldStore) Read(_ context.Context, reads []journal.Read) {
	for i := range reads {
		r := &reads[i]
		r.Err = journal.ErrFreed
		for _, rec := range s.records {
			if rec.At == r.At {
				r.Buf, r.Err = append(r.Buf, rec.Payload...), nil
			}
		}
	}
}

func (s *oldStore) Append(journal.Claim, *journal.Group) error                    { return journal.ErrFull }
func (s *oldStore) Truncate(context.Context, journal.Claim, journal.Retain) error { return nil }
func (s *oldStore) Watch(journal.Claim, func(journal.Status))                     {}
func (s *oldStore) Release(context.Context, journal.Claim) error                  { return nil }
func (s *oldStore) Status(journal.Claim) journal.Status                           { return journal.Status{} }
func (s *oldStore) Reserve(journal.Claim, journal.Reservation)                    {}
func (s *oldStore) Usage(journal.Claim) journal.Usage                             { return journal.Usage{} }
func (s *oldStore) Retained(journal.Claim) map[uint64]journal.RetainedSegment     { return nil }

// Stores that earlier versions wrote can always be read. The first has the reasons of
// its dead letters in their bodies, the second beside them.
func TestRecordsOfEarlierVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/records/*.hex")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d stores to read: %v", len(files), err)
	}
	for _, name := range files {
		j := readOldStore(t, name)
		s, err := Open(context.Background(), j, 0, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.Look(func(tx *Tx) {
			for part, want := range j.digests {
				q, err := tx.Inspect(1, SubQueue(part))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := q.StateHash(time.Time{}); hex.EncodeToString(got[:]) != want {
					t.Errorf("%s: part %d has digest %x, want %s", name, part, got, want)
				}
			}
			dead, _ := tx.Inspect(1, DeadLetter)
			letters, _ := dead.Peek(time.Time{}, queue.Peek{Max: 10})
			for _, qd := range letters {
				d, err := tx.Delivery(1, DeadLetter, qd)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				m, err := d.Message()
				if err != nil {
					t.Fatalf("%s: dead letter %d: %v", name, d.Seq, err)
				}
				if v, _ := m.Property(message.PropertyDeadLetterReason); v.String() != "because" {
					t.Errorf("%s: dead letter %d has the reason %v", name, d.Seq, v)
				}
				if m.BodySize() == 0 {
					t.Errorf("%s: dead letter %d has no body", name, d.Seq)
				}
			}
			if n := dead.Counts().Total(); n != 2 {
				t.Errorf("%s: %d dead letters, want 2", name, n)
			}
		})
	}
}
