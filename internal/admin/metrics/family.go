// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/triagemq/triagemq/internal/admin/problem"
)

const (
	// scrapers is how many requests collect at the same time.
	scrapers = 2
	// seriesCost is about what a series takes while its family is written.
	seriesCost = 512
)

// source is what many metrics are made of. It is read once for a scrape, and kept in a compact
// form; its metrics are made from that, one family at a time.
type source interface {
	// load reads the broker and returns about how many bytes it keeps.
	load(ctx context.Context) (bytes int64)
	// families returns the families that it has.
	families() []*prometheus.Desc
	// tell tells all series to a sink.
	tell(sink)
}

// sink takes the series of one family, and leaves out all others.
type sink struct {
	family *prometheus.Desc
	to     chan<- prometheus.Metric
}

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.set(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) set(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	if d == s.family {
		s.to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
}

// family is one family of a source. It is a prometheus.Collector.
type family struct {
	source
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (f family) Describe(to chan<- *prometheus.Desc) { to <- f.desc }

// Collect implements prometheus.Collector.
func (f family) Collect(to chan<- prometheus.Metric) { f.tell(sink{f.desc, to}) }

// scrape is one request for the metrics. Nothing but a family is in memory at a time.
type scrape struct {
	*handler
	r       *http.Request
	w       http.ResponseWriter
	out     io.Writer      // w, or what compresses
	encoder expfmt.Encoder // to out; nil until the answer has begun
	zipped  *gzip.Writer   // nil without compression
	largest int64          // bytes that are charged for the largest family
}

// serve writes the metrics of sources, and those of collectors that have few.
func (s *scrape) serve(sources []source, few prometheus.Gatherer) error {
	for _, src := range sources {
		var bytes int64
		if err := s.inTurn(func() error { bytes = src.load(s.r.Context()); return nil }); err != nil {
			return err
		}
		if !s.ChargeMemory(s.r, bytes) {
			return problem.Busy()
		}
		for _, d := range src.families() {
			one := prometheus.NewRegistry()
			one.MustRegister(family{src, d})
			if err := s.write(one); err != nil {
				return err
			}
		}
	}
	if err := s.write(few); err != nil {
		return err
	}
	if s.zipped != nil {
		return s.zipped.Close()
	}
	return nil
}

// inTurn does work that takes a processor and memory, when few others do.
func (s *scrape) inTurn(work func() error) error {
	select {
	case s.turns <- struct{}{}:
	case <-s.r.Context().Done():
		return s.r.Context().Err()
	}
	defer func() { <-s.turns }()
	return work()
}

// write writes what a registry has now.
func (s *scrape) write(from prometheus.Gatherer) error {
	var found []*dto.MetricFamily
	err := s.inTurn(func() (err error) {
		found, err = from.Gather()
		return err
	})
	if err != nil {
		s.Log.Warn("cannot collect metrics", "err", err)
	}
	n := int64(0)
	for _, f := range found {
		n += seriesCost * int64(len(f.GetMetric()))
	}
	if n > s.largest {
		if !s.ChargeMemory(s.r, n-s.largest) {
			return problem.Busy()
		}
		s.largest = n
	}
	if s.encoder == nil {
		s.begin()
	}
	for _, f := range found {
		if err := s.encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// begin writes the header, in the format that the client asks for.
func (s *scrape) begin() {
	format := expfmt.Negotiate(s.r.Header)
	s.w.Header().Set("Content-Type", string(format))
	s.out = s.w
	if strings.Contains(s.r.Header.Get("Accept-Encoding"), "gzip") {
		s.w.Header().Set("Content-Encoding", "gzip")
		s.zipped = gzip.NewWriter(s.w)
		s.out = s.zipped
	}
	s.encoder = expfmt.NewEncoder(s.out, format)
}
