// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/stream"
)

// opened is a reader, or why there is none, and how it ended.
type opened struct {
	*Reader
	err, ended error
}

// openAll opens readers one after the other; a negative epoch is none.
func (r *rig) openAll(epochs ...int64) []*opened {
	r.t.Helper()
	var all []*opened
	for i, e := range epochs {
		x := &opened{}
		o := ReaderOptions{Group: "g", Name: fmt.Sprint("r", i), Ended: func(err error) { x.ended = err }}
		if e >= 0 {
			o.Epoch = &e
		}
		x.Reader, x.err = run(r, func() (*Reader, error) { return r.h.OpenReader(r.t.Context(), o) })
		all = append(all, x)
	}
	return all
}

func TestEpochsExcludeReaders(t *testing.T) {
	for name, c := range map[string]struct {
		epochs  []int64
		refused []int  // which of them
		ended   []int  // which of them
		text    string // of the last error
	}{
		"without":        {[]int64{-1, -1, -1, -1, -1}, nil, nil, ""},
		"a sixth":        {[]int64{-1, -1, -1, -1, -1, -1}, []int{5}, nil, "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5. List of connected receivers - r0, r1, r2, r3, r4"},
		"steals all":     {[]int64{-1, -1, 0}, nil, []int{0, 1}, "New receiver 'r2' with epoch of '0' is created hence current receiver 'r1' without epoch is getting disconnected. If you are recreating the receiver, make sure a higher epoch is used."},
		"higher":         {[]int64{0, 1}, nil, []int{0}, "New receiver 'r1' with higher epoch of '1' is created hence current receiver 'r0' with epoch '0' is getting disconnected. If you are recreating the receiver, make sure a higher epoch is used."},
		"the same":       {[]int64{7, 7}, nil, []int{0}, ""},
		"lower":          {[]int64{1, 0}, []int{1}, nil, "Receiver 'r0' with a higher epoch '1' already exists. Receiver 'r1' with epoch 0 cannot be created. Make sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure all old epoch receivers are closed or disconnected"},
		"none after one": {[]int64{2, -1}, []int{1}, nil, "At least one receiver for the endpoint is created with epoch of '2', and so non-epoch receiver is not allowed. Either reconnect with a higher epoch, or make sure all epoch receivers are closed or disconnected."},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Settings{Partitions: 1})
			var refused, ended []int
			var last error
			for i, x := range r.openAll(c.epochs...) {
				if x.err != nil {
					refused, last = append(refused, i), x.err
				}
				if x.ended != nil {
					ended, last = append(ended, i), x.ended
				}
			}
			if !slices.Equal(refused, c.refused) || !slices.Equal(ended, c.ended) {
				t.Errorf("refused %v, ended %v, want %v, %v", refused, ended, c.refused, c.ended)
			}
			if c.text != "" && (last == nil || last.Error() != c.text) {
				t.Errorf("%v, want %s", last, c.text)
			}
			if last != nil && !errors.Is(last, ErrStolen) && !errors.Is(last, ErrReaders) {
				t.Errorf("%T has no sentinel", last)
			}
		})
	}
}

func TestGroupsAndPartitionsAreIndependent(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	epoch := int64(1)
	r.reader(ReaderOptions{Group: "a", Epoch: &epoch})
	r.reader(ReaderOptions{Group: "b"})
	r.reader(ReaderOptions{Group: "a", Partition: 1})
}

func TestAReaderThatIsClosedMakesPlace(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	all := r.openAll(9)
	all[0].Close()
	r.step()
	if got := r.openAll(-1); got[0].err != nil {
		t.Error(got[0].err)
	}
	if all[0].ended != nil {
		t.Errorf("Ended was called after Close: %v", all[0].ended)
	}
	if n := len(r.h.partitions[0].groups); n != 1 {
		t.Errorf("%d groups", n)
	}
}

// A reader that waits at the end learns that it was stolen, and so does one that is just
// about to ask.
func TestAStolenReaderEnds(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	all := r.openAll(1)
	if _, err := r.next(all[0].Reader, 100); err != nil { // it waits now
		t.Fatal(err)
	}
	r.openAll(2)
	for range 2 {
		_, err := r.next(all[0].Reader, 100)
		if !errors.Is(err, ErrStolen) || !strings.Contains(err.Error(), "'r0'") {
			t.Errorf("%v", err)
		}
	}
	all[0].Close() // no use, no harm
	r.step()
	if n := len(r.h.partitions[0].readers()); n != 1 {
		t.Errorf("%d readers", n)
	}
}

func TestAHubThatStopsEndsItsReaders(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	all := r.openAll(-1, -1)
	if _, err := r.next(all[0].Reader, 100); err != nil {
		t.Fatal(err)
	}
	r.h.Engine.Manual().Stop(ErrStopped)
	for _, x := range all {
		if !errors.Is(x.ended, ErrStopped) {
			t.Errorf("Ended got %v", x.ended)
		}
		if _, err := r.next(x.Reader, 100); !errors.Is(err, ErrStopped) {
			t.Errorf("Next returned %v", err)
		}
	}
	if _, err := r.h.OpenReader(t.Context(), ReaderOptions{}); !errors.Is(err, ErrStopped) {
		t.Errorf("OpenReader returned %v", err)
	}
	var got error
	r.h.Append(&Append{Raw: []byte("x"), Count: 1, Done: func(_ stream.SeqNo, err error) { got = err }})
	if !errors.Is(got, ErrStopped) {
		t.Errorf("Append got %v", got)
	}
}
