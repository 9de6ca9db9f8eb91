// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"io"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
)

// Report is what a run measured. What does not apply is zero.
type Report struct {
	Config string `json:"config"`

	Fill Throughput `json:"fill,omitzero"` // of the backlog
	In   Throughput `json:"in,omitzero"`   // accepted
	Out  Throughput `json:"out,omitzero"`  // received and settled

	Confirm Quantiles `json:"confirm,omitzero"` // from sending to accepted
	Latency Quantiles `json:"latency,omitzero"` // from sending to receipt
	Urgent  Quantiles `json:"urgent,omitzero"`  // the same, of urgent messages

	Refused uint64 `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`  // why the first was rejected
	Missing uint64 `json:"missing,omitempty"` // accepted and not received
	Foreign uint64 `json:"foreign,omitempty"` // of other runs
	Left    uint64 `json:"left,omitempty"`    // of the backlog, at the end
	Behind  uint64 `json:"behind,omitempty"`  // old events that readers behind have read
}

// Throughput is a number of messages over a time.
type Throughput struct {
	Messages  uint64        `json:"messages"`
	Elapsed   time.Duration `json:"elapsed"` // nanoseconds
	PerSecond float64       `json:"perSecond"`
	// Processor is the time that this process, which may have the broker in it,
	// was on a processor for each message, in nanoseconds.
	Processor time.Duration `json:"processorPerMessage"`
}

// Quantiles describe lengths of time, in nanoseconds.
type Quantiles struct {
	Count uint64        `json:"count"`
	Mean  time.Duration `json:"mean"`
	P50   time.Duration `json:"p50"`
	P90   time.Duration `json:"p90"`
	P99   time.Duration `json:"p99"`
	P999  time.Duration `json:"p999"`
	Max   time.Duration `json:"max"`
}

func throughput(n uint64, took, processor time.Duration) Throughput {
	t := Throughput{Messages: n, Elapsed: took}
	if n > 0 && took > 0 {
		t.PerSecond = float64(n) / took.Seconds()
		t.Processor = processor / time.Duration(n)
	}
	return t
}

func quantiles(h *objective.Histogram) Quantiles {
	if h.Count() == 0 {
		return Quantiles{}
	}
	return Quantiles{
		Count: h.Count(), Mean: h.Mean(),
		P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Quantile(1),
	}
}

// summary says in a line what a run does.
func summary(c Config) string {
	load := fmt.Sprintf("%s, %d senders, %d receivers, %d bytes, %d levels, window %d, credit %d",
		c.Mode, c.Senders, c.Receivers, c.Size, c.Levels, c.Window, c.Credit)
	if c.Hub != "" {
		load = fmt.Sprintf("%s, %d partitions, %d senders, %d receivers, %d bytes, window %d, credit %d",
			c.Mode, c.Partitions, c.Senders, c.Receivers, c.Size, c.Window, c.Credit)
	}
	if c.Urgent > 0 {
		load = fmt.Sprintf("%d urgent, %d workers with one message each, %d bytes", c.Urgent, c.Receivers, c.Size)
	}
	if c.Batch > 1 {
		load += fmt.Sprintf(", batches of %d", c.Batch)
	}
	if c.Rate > 0 {
		load += fmt.Sprintf(", at most %d a second", c.Rate)
	}
	if c.Backlog > 0 {
		load += fmt.Sprintf(", %d waiting", c.Backlog)
	}
	return load
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintln(w, r.Config)
	for _, t := range []struct {
		name string
		of   Throughput
	}{{"filled", r.Fill}, {"in", r.In}, {"out", r.Out}} {
		if t.of.Messages > 0 {
			fmt.Fprintf(w, "  %-8s %9.0f/s   %d in %v, %v of processor each\n", t.name, t.of.PerSecond,
				t.of.Messages, t.of.Elapsed.Round(time.Millisecond), t.of.Processor)
		}
	}
	for _, q := range []struct {
		name string
		of   Quantiles
	}{{"confirm", r.Confirm}, {"latency", r.Latency}, {"urgent", r.Urgent}} {
		if q.of.Count > 0 {
			fmt.Fprintf(w, "  %-8s p50 %v  p90 %v  p99 %v  p99.9 %v  max %v  (%d)\n", q.name,
				q.of.P50, q.of.P90, q.of.P99, q.of.P999, q.of.Max, q.of.Count)
		}
	}
	for _, n := range []struct {
		count uint64
		text  string
	}{
		{r.Refused, "were rejected"}, {r.Missing, "were accepted and not received"},
		{r.Foreign, "of other runs were in the queue"}, {r.Left, "of the backlog are left"},
		{r.Behind, "that are old were read meanwhile"},
	} {
		if n.count > 0 {
			fmt.Fprintf(w, "  %d messages %s\n", n.count, n.text)
		}
	}
	if r.Reason != "" {
		fmt.Fprintf(w, "  the first rejection: %s\n", r.Reason)
	}
}
