// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// BenchmarkReceiveEvents reads events of 256 bytes, published in batches of a hundred, from
// a broker in the same process. An operation is one event.
func BenchmarkReceiveEvents(b *testing.B) {
	for _, bm := range []struct {
		name       string
		properties map[string]any
	}{
		{"plain", nil},
		{"properties", map[string]any{"home": "home-12345", "sensor": "smoke", "level": int32(17)}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			const stored = 200_000
			br := triagetest.Start(b, hub)
			c := br.Client()
			s, err := c.OpenSender(b.Context(), "clicks/Partitions/1", nil)
			if err != nil {
				b.Fatal(err)
			}
			var ms []*client.Message
			for range 100 {
				ms = append(ms, &client.Message{Body: bytes.Repeat([]byte("x"), 256), Properties: bm.properties})
			}
			for range stored / len(ms) {
				if err := s.SendBatch(b.Context(), ms); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				r, err := c.OpenEventReader(b.Context(), "clicks", "1", nil)
				if err != nil {
					b.Fatal(err)
				}
				for seen := 0; seen < stored && n < b.N; {
					es, err := r.Receive(b.Context(), 100)
					if err != nil {
						b.Fatal(err)
					}
					seen += len(es)
					n += len(es)
				}
				b.StopTimer()
				_ = r.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
