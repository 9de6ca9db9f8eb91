// SPDX-License-Identifier: Apache-2.0

// Package group is the coordinator of event processors: the members of the consumer groups
// of one event hub, which partitions they have, and how far they are.
package group
