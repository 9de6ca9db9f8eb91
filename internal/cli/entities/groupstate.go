// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// groupState is how the members of a group share its partitions, as the API shows it.
type groupState struct {
	Members      []groupMember    `json:"members"`
	OwnerChanges uint64           `json:"ownerChanges"`
	Partitions   []groupPartition `json:"partitions"`
	Changes      []struct {
		At        time.Time `json:"at"`
		Partition string    `json:"partition"`
		From      string    `json:"from"`
		To        string    `json:"to"`
		Why       string    `json:"why"`
	} `json:"changes"`
}

type groupMember struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Partitions int       `json:"partitions"`
	Connected  bool      `json:"connected"`
	Leaving    bool      `json:"leaving"`
	Since      time.Time `json:"since"`
	Heard      time.Time `json:"heard"`
}

func (m groupMember) state() string {
	switch {
	case m.Leaving:
		return "leaving"
	case m.Connected:
		return "connected"
	}
	return "away"
}

type groupPartition struct {
	ID            string    `json:"id"`
	State         string    `json:"state"`
	Owner         string    `json:"owner"`
	Epoch         int64     `json:"epoch"`
	Since         time.Time `json:"since"`
	Checkpoint    *int64    `json:"checkpoint"`
	CheckpointAge *float64  `json:"checkpointAgeSeconds"`
	Handled       *int64    `json:"handled"`
	LagEvents     int64     `json:"lagEvents"`
	LagBytes      int64     `json:"lagBytes"`
	LagSeconds    float64   `json:"lagSeconds"`
	GoneEvents    int64     `json:"goneEvents"`
	SkippedEvents uint64    `json:"skippedEvents"`
	Stuck         bool      `json:"stuck"`
	PausedUntil   time.Time `json:"pausedUntil"`
}

// stateText is the state with what makes it more than one word.
func (p groupPartition) stateText() string {
	switch {
	case p.Stuck:
		return p.State + ", stuck"
	case p.State == "paused" && time.Until(p.PausedUntil) < 10*365*24*time.Hour:
		return "paused until " + cli.TimeText(p.PausedUntil)
	}
	return p.State
}

// numberText is a sequence number that may be none, or that of no event.
func numberText(n *int64) string {
	switch {
	case n == nil:
		return "-"
	case *n < 0:
		return "beginning"
	}
	return strconv.FormatInt(*n, 10)
}

// used reports whether anybody has ever been a member, claimed a partition or written a
// checkpoint.
func (s *groupState) used() bool {
	return s != nil && (len(s.Members) > 0 || slices.ContainsFunc(s.Partitions, func(p groupPartition) bool {
		return p.Epoch > 0 || p.Owner != "" || p.Checkpoint != nil
	}))
}

// owner returns how an owner is shown: by the name of the member, unless it has none or
// another has the same.
func (s *groupState) owner(id string) string {
	name := ""
	for _, m := range s.Members {
		if m.ID == id {
			name = m.Name
		}
	}
	for _, m := range s.Members {
		if name == "" || m.ID != id && m.Name == name {
			return cli.Short(id, cli.BodyColumn)
		}
	}
	return cli.Short(cmp.Or(name, id), cli.BodyColumn)
}

// shownChanges is how many of the last changes of owners are listed.
const shownChanges = 10

func (s *groupState) print(w io.Writer) {
	if len(s.Members) > 0 {
		fmt.Fprintln(w)
		t := cli.NewTable("MEMBER", "NAME", "STATE", "#PARTITIONS", "SINCE", "HEARD")
		for _, m := range s.Members {
			t.Add(cli.Short(m.ID, cli.BodyColumn), cli.Short(m.Name, cli.BodyColumn), m.state(), m.Partitions, cli.TimeText(m.Since), cli.TimeText(m.Heard))
		}
		t.Print(w)
	}
	fmt.Fprintln(w)
	t := cli.NewTable("#PARTITION", "STATE", "OWNER", "#EPOCH", "#CHECKPOINT", "#HANDLED", "#EVENTS BEHIND", "SINCE")
	for _, p := range s.Partitions {
		t.Add(p.ID, p.stateText(), s.owner(p.Owner), p.Epoch, numberText(p.Checkpoint), numberText(p.Handled), p.LagEvents, cli.TimeText(p.Since))
	}
	t.Print(w)
	if len(s.Changes) > 0 {
		fmt.Fprintln(w)
		t := cli.NewTable("CHANGED", "#PARTITION", "FROM", "TO", "WHY")
		for _, c := range s.Changes[max(0, len(s.Changes)-shownChanges):] {
			t.Add(cli.TimeText(c.At), c.Partition, s.owner(c.From), s.owner(c.To), c.Why)
		}
		t.Print(w)
	}
}

func (k *groupCommand) lagCommand() *cobra.Command {
	return &cobra.Command{
		Use: k.use("lag"), Short: "Show how far a consumer group is behind in each partition", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			var raw struct {
				State struct {
					Members    []groupMember   `json:"members"`
					Partitions json.RawMessage `json:"partitions"`
				} `json:"state"`
			}
			if err := a.Do(cmd.Context(), http.MethodGet, k.one(args), nil, &raw); err != nil {
				return err
			}
			if raw.State.Partitions == nil {
				return errors.New("the events of the hub cannot be reached; the broker's log says why")
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, raw.State.Partitions)
			}
			state := groupState{Members: raw.State.Members}
			if err := json.Unmarshal(raw.State.Partitions, &state.Partitions); err != nil {
				return err
			}
			t := cli.NewTable("#PARTITION", "STATE", "OWNER", "#EVENTS BEHIND", "#SIZE BEHIND", "#TIME BEHIND", "#EVENTS GONE", "#SKIPPED", "#CHECKPOINT", "#CHECKPOINT AGE")
			for _, p := range state.Partitions {
				age := "-"
				if p.CheckpointAge != nil {
					age = secondsText(*p.CheckpointAge)
				}
				t.Add(p.ID, p.stateText(), state.owner(p.Owner), p.LagEvents, cli.BytesText(p.LagBytes), secondsText(p.LagSeconds),
					p.GoneEvents, p.SkippedEvents, numberText(p.Checkpoint), age)
			}
			t.Print(k.Out)
			return nil
		}),
	}
}

// partitionFlags choose one partition or all of them.
type partitionFlags struct {
	partition int
	all       bool
}

func (f *partitionFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.partition, "partition", -1, "`number` of one partition")
	cmd.Flags().BoolVar(&f.all, "all", false, "all partitions")
}

// into says in a body, and in words, which partitions are meant.
func (f *partitionFlags) into(body map[string]any) (words string, err error) {
	if f.all == (f.partition >= 0) {
		return "", cli.Usage(errors.New("give --partition NUMBER or --all, and not both"))
	}
	if f.all {
		return "all partitions", nil
	}
	body["partition"] = f.partition
	return fmt.Sprintf("partition %d", f.partition), nil
}

func (k *groupCommand) rewindCommand() *cobra.Command {
	var f partitionFlags
	var to string
	cmd := &cobra.Command{
		Use: k.use("rewind"), Short: "Have a consumer group read again from a position, or skip to one", Args: cli.Exactly(k.args...),
		Example: `  triagemq group rewind clicks dashboard --all --to -1h
  triagemq group rewind clicks dashboard --partition 3 --to 1200
  triagemq group rewind clicks dashboard --all --to 2026-01-31T12:00:00Z`,
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			if to == "" {
				return cli.Usage(errors.New("give a position: --to earliest, latest, a sequence number, a time, or -1h"))
			}
			body := map[string]any{"to": to}
			which, err := f.into(body)
			if err != nil {
				return err
			}
			return k.change(cmd.Context(), a, http.MethodPost, k.one(args)+"/rewind", body, fmt.Sprintf("Set %s of %s to %s", which, k.name(args), to))
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&to, "to", "", "`position`: earliest, latest, a sequence number, a time, or how long ago such as -1h")
	return cmd
}

func (k *groupCommand) releaseCommand() *cobra.Command {
	var partition int
	var coolDown string
	cmd := &cobra.Command{
		Use: k.use("release"), Short: "Take a partition from its owner, so that another member gets it", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			if partition < 0 {
				return cli.Usage(errors.New("give --partition NUMBER"))
			}
			body := map[string]any{"partition": partition, "coolDown": coolDown}
			return k.change(cmd.Context(), a, http.MethodPost, k.one(args)+"/release", body, fmt.Sprintf("Released partition %d of %s", partition, k.name(args)))
		}),
	}
	cmd.Flags().IntVar(&partition, "partition", -1, "`number` of the partition")
	cmd.Flags().StringVar(&coolDown, "cool-down", "1m", "how `long` its owner does not get it back")
	return cmd
}

func (k *groupCommand) pauseCommand() *cobra.Command {
	var f partitionFlags
	var pause string
	cmd := &cobra.Command{
		Use: k.use("pause"), Short: "Keep partitions from all members of a consumer group", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			body, how := map[string]any{}, "until they are resumed"
			if pause != "" {
				body["for"], how = pause, "for "+pause
			}
			which, err := f.into(body)
			if err != nil {
				return err
			}
			return k.change(cmd.Context(), a, http.MethodPost, k.one(args)+"/pause", body, fmt.Sprintf("Paused %s of %s %s", which, k.name(args), how))
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&pause, "for", "", "how `long`: 30s, 10m, 2h; default: until resumed")
	return cmd
}

func (k *groupCommand) resumeCommand() *cobra.Command {
	var f partitionFlags
	cmd := &cobra.Command{
		Use: k.use("resume"), Short: "End the pause of partitions of a consumer group", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			body := map[string]any{}
			which, err := f.into(body)
			if err != nil {
				return err
			}
			return k.change(cmd.Context(), a, http.MethodPost, k.one(args)+"/resume", body, fmt.Sprintf("Resumed %s of %s", which, k.name(args)))
		}),
	}
	f.add(cmd)
	return cmd
}
