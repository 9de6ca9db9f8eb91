// SPDX-License-Identifier: Apache-2.0

// Package processors tests event processors as real processes at a real broker: instances
// that are suspended and go on, a broker that is killed while partitions move, and fleets
// in which our processor and those of the SDKs share one hub.
package processors
