// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

var errNotYet = errors.New("streamserver: not there yet")

// MemberOptions say who joins a consumer group.
type MemberOptions struct {
	Group, ID, Run, Name string
	// Keep is how long its partitions wait for it when its connection is lost.
	Keep time.Duration
	// Changed gets everything that the member has, each time it changes. It is called on
	// the engine's goroutine, only with what is durable, and must not block.
	Changed func(group.Assignment)
	// Ended is called once if the member ends by itself: it has joined elsewhere, has left,
	// was silent for too long, or the hub is gone. It is called as Changed is.
	Ended func(error)
}

// Member is a process that handles events of a consumer group.
type Member struct {
	hub  *Hub
	opts MemberOptions
}

// Report is a sign of life of a member, with how far it is.
type Report struct{ Handled []group.Progress }

// Join adds a member to a group. It has no partitions at first.
func (h *Hub) Join(ctx context.Context, o MemberOptions) (*Member, error) { return nil, errNotYet }

// Report tells how far the member is. It never blocks.
func (m *Member) Report(r Report) {}

// Gone says that the connection is lost. It never blocks.
func (m *Member) Gone() {}

// Leave gives all partitions back as a planned move. It returns at once; the member ends
// when the last one is released or taken.
func (m *Member) Leave(ctx context.Context) error { return errNotYet }

// Report is [Member.Report] of a member that is known by its id.
func (h *Hub) Report(grp, member string, r Report) {}

// Leave is [Member.Leave] of a member that is known by its id.
func (h *Hub) Leave(ctx context.Context, grp, member string) error { return errNotYet }

// Release gives up a partition after its owner has stopped to handle it.
func (h *Hub) Release(ctx context.Context, grp, member string, partition int, epoch int64, coolDown time.Duration) error {
	return errNotYet
}

// Checkpoint stores how far partitions are handled. The errors are those of the entries.
func (h *Hub) Checkpoint(ctx context.Context, grp string, cs []group.Checkpoint) ([]error, error) {
	return nil, errNotYet
}

// Rewind sets the checkpoint of a partition, back or forth. It returns the event before the
// one that is handled next.
func (h *Hub) Rewind(ctx context.Context, grp string, partition int, to stream.Start) (stream.SeqNo, error) {
	return 0, errNotYet
}

// MoveAway takes a partition from its owner, who does not get it back for a while.
func (h *Hub) MoveAway(ctx context.Context, grp string, partition int, coolDown time.Duration) error {
	return errNotYet
}

// Pause keeps a partition from everybody until a time; zero is no longer.
func (h *Hub) Pause(ctx context.Context, grp string, partition int, until time.Time) error {
	return errNotYet
}

// Claim claims partitions for processors that balance by themselves. It returns the claims
// that won.
func (h *Hub) Claim(ctx context.Context, grp string, cs []group.Ownership) ([]group.Ownership, error) {
	return nil, errNotYet
}

// Claims returns the claims that there are.
func (h *Hub) Claims(ctx context.Context, grp string) ([]group.Ownership, error) {
	return nil, errNotYet
}

// SetCheckpoint stores a checkpoint without a fence: the partition may have any owner.
func (h *Hub) SetCheckpoint(ctx context.Context, grp string, c group.Checkpoint) error {
	return errNotYet
}

// Group returns the state of a group.
func (h *Hub) Group(ctx context.Context, grp string) (GroupInfo, error) {
	return GroupInfo{}, errNotYet
}

// ForgetGroup ends all members of a group and forgets it.
func (h *Hub) ForgetGroup(ctx context.Context, grp string) error { return nil }
