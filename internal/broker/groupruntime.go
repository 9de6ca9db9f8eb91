// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// GroupState is how the members of a consumer group share its partitions, and how far they
// are.
type GroupState struct {
	Members []MemberRuntime `json:"members"`
	// OwnerChanges counts the partitions that moved from one member to another, since the
	// hub was opened.
	OwnerChanges uint64           `json:"ownerChanges"`
	Partitions   []GroupPartition `json:"partitions"`
	Changes      []GroupChange    `json:"changes"` // the last ones since the hub was opened, newest last
}

// MemberRuntime is a member of a consumer group.
type MemberRuntime struct {
	ID         string     `json:"id"`
	Name       string     `json:"name,omitzero"`
	Partitions int        `json:"partitions"`
	Connected  bool       `json:"connected"`
	Leaving    bool       `json:"leaving,omitzero"`
	Since      time.Time  `json:"since"`           // when it joined
	Heard      *time.Time `json:"heard,omitempty"` // when it last reported; nil since the hub was opened
}

// GroupPartition is how far a consumer group is in a partition.
type GroupPartition struct {
	ID    string     `json:"id"`
	State string     `json:"state"` // free, owned, revoking, paused or claimed
	Owner string     `json:"owner,omitzero"`
	Epoch int64      `json:"epoch"`
	Since *time.Time `json:"since,omitempty"` // when the owner got it

	// Checkpoint is the last event that is handled for certain. It is nil if there is none,
	// and -2 before the first event.
	Checkpoint           *int64   `json:"checkpoint,omitempty"`
	CheckpointAgeSeconds *float64 `json:"checkpointAgeSeconds,omitempty"`
	// Handled is the last event that is handled, as the owner has reported; nil if it is not
	// known.
	Handled *int64 `json:"handled,omitempty"`

	LagEvents  int64   `json:"lagEvents"` // that are not handled
	LagBytes   int64   `json:"lagBytes"`  // about
	LagSeconds float64 `json:"lagSeconds"`
	// GoneEvents is how many events are not handled and not there any more, because they were
	// older than the retention or damaged; they are not in the lag. SkippedEvents is how many
	// of such events the owners have passed, as these have reported while there were members.
	GoneEvents    int64  `json:"goneEvents"`
	SkippedEvents uint64 `json:"skippedEvents"`
	// Stuck says that there are events to handle and none was for half a minute, though the
	// owner is there.
	Stuck       bool       `json:"stuck"`
	PausedUntil *time.Time `json:"pausedUntil,omitempty"`
}

// GroupChange is a change of the owner of a partition.
type GroupChange struct {
	At        time.Time `json:"at"`
	Partition string    `json:"partition"`
	From      string    `json:"from,omitzero"` // "" is nobody
	To        string    `json:"to,omitzero"`
	Why       string    `json:"why"`
}

// GroupState returns how a consumer group shares its partitions. It is nil if the events
// of the hub cannot be reached.
func (b *Broker) GroupState(ctx context.Context, hub, group string) (*GroupState, error) {
	h, err := b.hub(hub)
	if errors.Is(err, ErrUnavailable) {
		return nil, nil
	}
	if err == nil && h.path.OfHub() { // as HubRuntime has it
		err = fmt.Errorf("%w: hub %q", ErrNotFound, hub)
	}
	if err != nil {
		return nil, err
	}
	info, err := h.on.Group(ctx, entity.Key(group))
	if err != nil {
		return nil, catalog.Translate(err)
	}
	return groupState(&info), nil
}

func groupState(info *streamserver.GroupInfo) *GroupState {
	s := &GroupState{
		OwnerChanges: info.Moves,
		Members:      make([]MemberRuntime, len(info.Members)),
		Partitions:   make([]GroupPartition, len(info.Partitions)),
		Changes:      make([]GroupChange, len(info.Changes)),
	}
	for i, m := range info.Members {
		s.Members[i] = MemberRuntime{
			ID: m.ID, Name: m.Name, Partitions: m.Partitions, Connected: m.Connected, Leaving: m.Leaving, Since: m.Since, Heard: given(m.Heard),
		}
	}
	for i := range info.Partitions {
		s.Partitions[i] = groupPartition(&info.Partitions[i])
	}
	for i, c := range info.Changes {
		s.Changes[i] = GroupChange{At: c.At, Partition: fmt.Sprint(c.Partition), From: c.From, To: c.To, Why: c.Why}
	}
	return s
}

func groupPartition(p *streamserver.GroupPartition) GroupPartition {
	out := GroupPartition{
		ID: fmt.Sprint(p.Partition), State: p.State, Owner: p.Owner, Epoch: p.Epoch, Since: given(p.Since),
		LagEvents: p.LagEvents, LagBytes: int64(p.LagBytes), LagSeconds: p.LagTime.Seconds(), Stuck: p.Stuck, PausedUntil: given(p.PausedUntil),
		GoneEvents: p.Gone, SkippedEvents: p.Skipped,
	}
	if p.Checkpoint != nil {
		n, age := int64(p.Checkpoint.SeqNo), p.CheckpointAge.Seconds()
		out.Checkpoint, out.CheckpointAgeSeconds = &n, &age
	}
	if p.Handled != NoCheckpoint {
		n := int64(p.Handled)
		out.Handled = &n
	}
	return out
}

// given returns a time, or nil if it is none.
func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ParseStart reads a position in a partition as people write it: earliest, latest, a
// sequence number, a time, or how long before now.
func ParseStart(text string, now time.Time) (stream.Start, error) {
	switch strings.ToLower(text) {
	case "earliest":
		return stream.Earliest(), nil
	case "latest":
		return stream.Latest(), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return stream.FromSeq(stream.SeqNo(n)), nil
	}
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		if d, err := entity.ParseDuration(ago); err == nil {
			return stream.FromTime(now.Add(-d.Std())), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return stream.FromTime(t), nil
	}
	return stream.Start{}, fmt.Errorf("%w: the position %q: it has to be earliest, latest, a sequence number, a time such as %s, or how long ago, such as -1h",
		ErrInvalid, text, now.UTC().Format(time.RFC3339))
}
