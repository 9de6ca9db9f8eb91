// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// diskGauge is a number that the disk of the store has.
type diskGauge struct {
	desc *prometheus.Desc
	of   func(Disk) float64
}

func newDiskGauge(name, help string, of func(Disk) float64) diskGauge {
	return diskGauge{prometheus.NewDesc("triagemq_disk_"+name, help, nil, nil), of}
}

// The metrics of the disk. Their names are part of the API and never change.
var (
	diskFree   = prometheus.NewDesc("triagemq_disk_free_bytes", "Free space on the disk of the store.", nil, nil)
	diskGauges = []diskGauge{
		newDiskGauge("available_bytes", "Space that the store has made its own and not yet used.", func(d Disk) float64 { return float64(d.Available) }),
		newDiskGauge("reserved_bytes", "Part of the available space that senders must leave to settlements and snapshots.", func(d Disk) float64 { return float64(d.Reserved) }),
		newDiskGauge("unsynced_bytes", "Bytes that wait to be written.", func(d Disk) float64 { return float64(d.Unsynced) }),
		newDiskGauge("full", "1 while sends are rejected because only reserved space is left.", func(d Disk) float64 { return oneIf(d.Full) }),
		newDiskGauge("busy", "1 while sends are rejected because too much waits to be written.", func(d Disk) float64 { return oneIf(d.Busy) }),
	}
)

// Disk is the disk space of the store, in bytes.
type Disk struct {
	Free      int64  // on the disk; negative if it is not known
	Available uint64 // that the store has already made its own, and not yet used
	Reserved  uint64 // of those, the bytes that sends may not use
	Unsynced  uint64 // that wait to be written
	Full      bool   // sends are rejected because only reserved space is left
	Busy      bool   // sends are rejected because too much waits to be written
}

func oneIf(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// diskCollector collects metrics of the disk. It is a prometheus.Collector.
type diskCollector struct{ disk func() Disk }

// Describe implements prometheus.Collector.
func (c diskCollector) Describe(to chan<- *prometheus.Desc) {
	to <- diskFree
	for _, g := range diskGauges {
		to <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (c diskCollector) Collect(to chan<- prometheus.Metric) {
	d := c.disk()
	if d.Free >= 0 {
		to <- prometheus.MustNewConstMetric(diskFree, prometheus.GaugeValue, float64(d.Free))
	}
	for _, g := range diskGauges {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(d))
	}
}
