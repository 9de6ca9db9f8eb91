// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
)

// numbered sends messages whose property n counts from 0.
func numbered(r *rig, count int) {
	r.t.Helper()
	for n := 0; n < count; {
		var batch []string
		for ; n < count && len(batch) < maxSend; n++ {
			batch = append(batch, fmt.Sprintf(`{"body":"x","properties":{"n":%d}}`, n))
		}
		r.want(201, "POST", apiRoot+"/queues/q/messages", "["+strings.Join(batch, ",")+"]")
	}
}

func TestPurgeRemovesWhatIsChosen(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	numbered(r, 600) // more than one window
	purge := func(query string, want Removed) {
		t.Helper()
		var got Removed
		r.want(200, "DELETE", apiRoot+"/queues/q/messages?"+query, "").into(t, &got)
		if got != want {
			t.Errorf("%s: %+v, want %+v", query, got, want)
		}
	}
	r.want(201, "POST", "/q/messages/head?timeout=5", "") // locks n = 0
	purge("filter=n+%3C+10", Removed{Removed: 9})
	purge("filter=n+%3C+400&max=5", Removed{Removed: 5})
	purge("from=591&max=3", Removed{Removed: 3})
	purge("from=591", Removed{Removed: 7})
	purge("filter=n+%3C+20&before=2001-01-01T00:00:00Z", Removed{})
	purge("before=0001-01-01T00:00:00Z", Removed{}) // the zero time, which is not the same as none
	purge("filter=n+%3C+20&max=0", Removed{})
	purge("max=0", Removed{}) // which is not the same as no limit
	purge("filter=n+%3C+20", Removed{Removed: 5})
	purge("filter=missing+%3D+1", Removed{})
	if c := r.counts("q"); c.Active != 571 || c.Locked != 1 {
		t.Errorf("%d left and %d locked, want 571 and 1", c.Active, c.Locked)
	}
	r.want(400, "DELETE", apiRoot+"/queues/q/messages?filter=n+%3C", "")
	r.want(400, "DELETE", apiRoot+"/queues/q/messages?from=x", "")
}

// A request examines a bounded number of messages and says where to continue.
func TestPurgeGoesOnWhereItStopped(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	numbered(r, limits.Examined+peekWindow)
	var removed int
	var stops []queue.SeqNo
	for next := queue.SeqNo(0); ; {
		var got Removed
		r.want(200, "DELETE", fmt.Sprintf("%s/queues/q/messages?filter=n+%%25+1000+%%3D+0&from=%d", apiRoot, next), "").into(t, &got)
		removed += got.Removed
		if next = got.Next; next == 0 {
			break
		}
		stops = append(stops, next)
	}
	if removed != 21 || len(stops) != 1 || stops[0] <= limits.Examined {
		t.Errorf("removed %d, stopped at %v; want 21, and one stop past %d", removed, stops, limits.Examined)
	}
}
