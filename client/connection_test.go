// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"testing"
	"testing/synctest"
)

// A caller that does not wait for a token leaves it to be refreshed for the others.
func TestTokenIsKeptWhenACallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnection(nil, nil, target{signature: "s"}, t.Context())
		s := newLazyValue[*grant]()
		s.value = &grant{}
		c.tokens["q"] = s
		s.sem <- struct{}{} // someone puts it
		patient := make(chan error, 1)
		go func() { patient <- c.authorize(t.Context(), "q") }() // received below
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if c.authorize(ended, "q") == nil {
			t.Error("authorized while the token is put")
		}
		<-s.sem
		if err := <-patient; err != nil {
			t.Error(err)
		}
		if got := c.granted(); len(got) != 1 {
			t.Errorf("tokens that are refreshed: %v, want that of q", got)
		}
	})
}
