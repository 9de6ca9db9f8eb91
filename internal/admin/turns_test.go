// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/admin/cost"
	"github.com/triagemq/triagemq/internal/entity"
)

// What takes long to decode waits for its turn, whatever becomes of it; what is short does not. A
// client that leaves while it waits is forgotten.
func TestBodiesAreDecodedInTurns(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	const feed = "?api-version=2021-05"
	entry := func(metadata string) string {
		return `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription><UserMetadata>` + metadata +
			`</UserMetadata></QueueDescription></content></entry>`
	}
	space := strings.Repeat(" ", cost.Quick)
	requests := []struct {
		name, method, path string
		body               string
		header             []string
	}{
		{"a batch", "POST", apiRoot + "/queues/q/messages", `[{"body":"a"}%s]`, nil},
		{"a message", "POST", apiRoot + "/queues/q/messages", `{"body":"a"%s}`, nil},
		{"a definition", "PUT", apiRoot + "/queues/p", `{%s}`, nil},
		{"a patch", "PATCH", apiRoot + "/queues/q", `{%s}`, nil},
		{"a batch of the simple interface", "POST", "/q/messages", `[{"Body":"a"}%s]`, []string{"Content-Type", "application/vnd.microsoft.servicebus.json"}},
		{"a definition in XML", "PUT", "/x" + feed, entry("%s"), nil},
	}
	ask := func(within time.Duration, i int, filler string) int {
		c := requests[i]
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		req := httptest.NewRequestWithContext(ctx, c.method, "http://localhost"+c.path, strings.NewReader(fmt.Sprintf(c.body, filler)))
		req.SetBasicAuth("root", "root key")
		for i := 0; i < len(c.header); i += 2 {
			req.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		return w.Code
	}
	for i, c := range requests {
		var leave []func()
		for n := range max(1, runtime.GOMAXPROCS(0)/2) {
			leave = append(leave, r.api.turns.Wait(fmt.Sprint("other", n)))
		}
		if got := ask(20*time.Millisecond, i, space); got/100 == 2 {
			t.Errorf("%s that is long did not wait: %d", c.name, got)
		}
		for _, f := range leave {
			f()
		}
		if got := ask(time.Minute, i, space); got/100 != 2 {
			t.Errorf("%s that is long has got its turn: %d", c.name, got)
		}
	}
	for n := range max(1, runtime.GOMAXPROCS(0)/2) {
		defer r.api.turns.Wait(fmt.Sprint("other", n))()
	}
	for _, i := range []int{0, 1, 4} { // those that send; the others answer with a definition
		if got := ask(10*time.Second, i, ""); got/100 != 2 {
			t.Errorf("%s that is short: %d", requests[i].name, got)
		}
	}
}
