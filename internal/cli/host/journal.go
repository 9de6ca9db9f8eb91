// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/vfs"
)

// journalFlags are what the journal commands can be told.
type journalFlags struct {
	data        string
	asJSON      bool
	shard       int
	hub         string // log of an event hub to dump
	dropDamaged bool
}

// exitCannotLook is the exit code for a store that is in use, or is none.
const ExitUnavailable = 3

// unavailableError is an error that says nothing about the state of a store.
type unavailableError struct{ error }

// ExitCode returns the code for stores that could not be looked at.
func (unavailableError) ExitCode() int { return ExitUnavailable }

func (e unavailableError) Unwrap() error { return e.error }

func JournalCommand(s cli.Streams) *cobra.Command {
	var f journalFlags
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Inspect and repair the store of a broker that is not running",
		Long: `Inspect and repair the store of a broker that is not running: the log of its
queues and topics, and the logs of its event hubs in the directory hubs below it.

Exit code 0: the store is undamaged. 1: it is damaged, or records were removed.
2: usage error. 3: the store cannot be opened: a broker is using it, or the
directory is not a store.`,
	}
	cmd.PersistentFlags().StringVar(&f.data, "data", "triagemq-data", "`directory` of the store")
	cmd.PersistentFlags().BoolVar(&f.asJSON, "json", false, "print JSON")

	verify := &cobra.Command{
		Use:   "verify",
		Short: "Verify the checksum of every record",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return f.verify(s.Out) },
	}
	dump := &cobra.Command{
		Use:   "dump",
		Short: "List every record, also those that are no longer needed",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return f.dump(s.Out) },
	}
	dump.Flags().StringVar(&f.hub, "hub", "", "list the log of an event hub: its `directory` below hubs")
	dump.Flags().IntVar(&f.shard, "shard", -1, "only records of this shard")
	repairCmd := &cobra.Command{
		Use:   "repair",
		Short: "Restore metadata and remove damaged records, so that the store can be opened",
		Long: `Restore what can be restored, such as a lost manifest, which the log has a copy of.
Remove damaged records so that the store can be opened, and list them. Make a copy
of the directory first.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.repair(s.Out) },
	}
	repairCmd.Flags().BoolVar(&f.dropDamaged, "drop-damaged", false, "confirm that damaged records are removed")
	cmd.AddCommand(verify, dump, repairCmd)
	return cmd
}

// open returns the disk of a store. The calls on it take the store's lock.
func (f *journalFlags) open() (vfs.FS, error) {
	info, err := os.Stat(f.data)
	switch {
	case err != nil:
		return nil, unavailableError{err}
	case !info.IsDir():
		return nil, unavailableError{fmt.Errorf("%s is not a directory", f.data)}
	}
	disk := vfs.OS(f.data)
	if found, err := repair.Exists(disk); err != nil || !found { // before its lock is made in a place that is none
		return nil, unavailableError{errors.Join(fmt.Errorf("%s holds no store", f.data), err)}
	}
	return disk, nil
}

// problem explains an error of the journal that is not damage.
func (f *journalFlags) problem(err error) error {
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return unavailableError{fmt.Errorf("a broker has %s open; stop it first", f.data)}
	case errors.Is(err, fs.ErrNotExist):
		return unavailableError{fmt.Errorf("%s holds no store: %w", f.data, err)}
	}
	return err
}

// problemJSON is a place that is damaged.
type problemJSON struct {
	File   string `json:"file"`
	Offset uint64 `json:"offset"`
	Reason string `json:"reason"`
}

func problemOf(err error) problemJSON {
	if d, ok := errors.AsType[*repair.DamageError](err); ok {
		return problemJSON{d.File, d.Offset, d.Err.Error()}
	}
	return problemJSON{Reason: err.Error()}
}

func problemsOf(errs []error) []problemJSON {
	all := []problemJSON{} // JSON has an empty list, not null
	for _, err := range errs {
		all = append(all, problemOf(err))
	}
	return all
}

// logStore is one log of a broker.
type logStore struct {
	name string // as it is shown; empty for that of queues and topics
	disk vfs.FS
}

// stores returns the logs of a broker, that of queues and topics first.
func (f *journalFlags) stores() ([]logStore, error) {
	disk, err := f.open()
	if err != nil {
		return nil, err
	}
	all := []logStore{{"", disk}}
	logs, err := disk.List(hubLogs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unavailableError{err}
	}
	for _, log := range logs {
		name := hubLogs + "/" + log
		sub := vfs.Sub(disk, name)
		if found, err := repair.Exists(sub); err == nil && found { // else it is empty, or being removed
			all = append(all, logStore{name, sub})
		}
	}
	return all, nil
}

// each does something with each store. With those of hubs it holds the lock of the first one,
// which is all that a broker holds that runs.
func (f *journalFlags) each(stores []logStore, do func(logStore) error) error {
	if err := do(stores[0]); err != nil {
		return err
	}
	return f.locked(stores[0].disk, func() error {
		for _, s := range stores[1:] {
			if err := do(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// locked does something with the lock of the first store.
func (f *journalFlags) locked(disk vfs.FS, do func() error) error {
	lock, err := repair.Lock(disk)
	if err != nil {
		return f.problem(err)
	}
	return errors.Join(do(), lock.Close())
}

// hubLogs is the directory of the logs of event hubs.
const hubLogs = "hubs"

func (f *journalFlags) verify(out io.Writer) error {
	stores, err := f.stores()
	if err != nil {
		return err
	}
	damaged := 0
	err = f.each(stores, func(s logStore) error {
		n, err := f.verifyStore(out, s)
		damaged += n
		return err
	})
	if err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("found %d damaged places in %s; copy the directory, then run `triagemq journal repair`", damaged, f.data)
	}
	return nil
}

// verifyStore verifies one log and returns how many places of it are damaged.
func (f *journalFlags) verifyStore(out io.Writer, s logStore) (damaged int, err error) {
	r, err := repair.Verify(s.disk)
	if err != nil && !errors.Is(err, journal.ErrCorrupt) {
		return 0, f.problem(err)
	}
	problems, notes := problemsOf(r.Problems), problemsOf(r.Notes)
	if f.asJSON {
		return len(problems), writeJSON(out, struct {
			Store    string        `json:"store,omitzero"`
			Segments int           `json:"segments"`
			Batches  int           `json:"batches"`
			Records  uint64        `json:"records"`
			Bytes    uint64        `json:"bytes"`
			End      uint64        `json:"end"`
			Problems []problemJSON `json:"problems"`
			Notes    []problemJSON `json:"notes"`
		}{s.name, r.Segments, r.Batches, r.Records, r.Bytes, uint64(r.End), problems, notes})
	}
	if s.name != "" {
		fmt.Fprintf(out, "%s: ", s.name)
	}
	fmt.Fprintf(out, "%d segments, %d batches, %d records, %d bytes; the log ends at %d\n",
		r.Segments, r.Batches, r.Records, r.Bytes, r.End)
	for _, p := range problems {
		fmt.Fprintf(out, "damaged: %s at %d: %s\n", s.file(p.File), p.Offset, p.Reason)
	}
	for _, p := range notes {
		fmt.Fprintf(out, "note: %s at %d: %s; there is another copy, and the next start restores this one\n", s.file(p.File), p.Offset, p.Reason)
	}
	if len(problems) == 0 {
		fmt.Fprintln(out, "no damage")
	}
	return len(problems), nil
}

// file returns the name of a file of the log as it is shown.
func (s logStore) file(name string) string { return path.Join(s.name, name) }

func (f *journalFlags) dump(out io.Writer) error {
	disk, err := f.open()
	if err != nil {
		return err
	}
	if f.hub == "" {
		return f.dumpStore(out, disk)
	}
	log := vfs.Sub(disk, hubLogs+"/"+f.hub)
	if found, err := repair.Exists(log); err != nil || !found {
		return unavailableError{errors.Join(fmt.Errorf("%s holds no log %s/%s", f.data, hubLogs, f.hub), err)}
	}
	return f.locked(disk, func() error { return f.dumpStore(out, log) })
}

func (f *journalFlags) dumpStore(out io.Writer, disk vfs.FS) error {
	const layout = "%12v %5v %5v %8v %7v  %-16v %v\n"
	if !f.asJSON {
		fmt.Fprintf(out, layout, "POSITION", "SHARD", "EPOCH", "NUMBER", "BYTES", "RECORD", "ABOUT")
	}
	damaged := 0
	for e, err := range repair.Dump(disk) {
		switch {
		case errors.Is(err, journal.ErrCorrupt):
			damaged++
			p := problemOf(err)
			if f.asJSON {
				err = writeJSON(out, map[string]problemJSON{"damaged": p})
			} else {
				_, err = fmt.Fprintf(out, "damaged: %s at %d: %s\n", p.File, p.Offset, p.Reason)
			}
		case err != nil:
			return f.problem(err)
		case f.shard >= 0 && e.Shard != journal.Shard(f.shard):
			continue
		default:
			kind, about := describe(e.Payload)
			if f.hub != "" {
				kind, about = describeEvents(e.Payload)
			}
			var shard any = e.Shard
			if e.Manifest {
				kind, about, shard = "manifest", "of the log itself", "-"
			}
			if f.asJSON {
				err = writeJSON(out, entryJSON{e.File, uint64(e.At), uint32(e.Shard), e.Epoch, e.Number, len(e.Payload), kind, about})
			} else {
				_, err = fmt.Fprintf(out, layout, e.At, shard, e.Epoch, e.Number, len(e.Payload), kind, about)
			}
		}
		if err != nil {
			return err
		}
	}
	if damaged > 0 {
		return fmt.Errorf("found %d damaged places in %s", damaged, f.data)
	}
	return nil
}

// entryJSON is one record of a dump.
type entryJSON struct {
	File   string `json:"file"`
	At     uint64 `json:"position"`
	Shard  uint32 `json:"shard"`
	Epoch  uint32 `json:"epoch"`
	Number uint64 `json:"number"`
	Bytes  int    `json:"bytes"`
	Record string `json:"record"`
	About  string `json:"about,omitempty"`
}

func (f *journalFlags) repair(out io.Writer) error {
	if !f.dropDamaged {
		return cli.Usage(errors.New("repair removes damaged records; confirm with --drop-damaged"))
	}
	stores, err := f.stores()
	if err != nil {
		return err
	}
	restored, dropped := 0, 0
	err = f.each(stores, func(s logStore) error {
		done, err := repair.Repair(s.disk, repair.DropDamaged)
		if err != nil {
			return f.problem(err)
		}
		restored += len(done.Restored)
		dropped += len(done.Dropped)
		return f.showRepair(out, s, done)
	})
	if err != nil {
		return err
	}
	if dropped > 0 {
		return fmt.Errorf("dropped %d damaged places of %s; the rest can be used", dropped, f.data)
	}
	switch {
	case f.asJSON:
	case restored > 0:
		fmt.Fprintln(out, "nothing dropped")
	default:
		fmt.Fprintln(out, "no damage, nothing dropped")
	}
	return nil
}

// showRepair lists what was done to one log.
func (f *journalFlags) showRepair(out io.Writer, s logStore, done repair.Result) (err error) {
	for _, r := range done.Restored {
		if f.asJSON {
			err = writeJSON(out, map[string]problemJSON{"restored": {File: s.file(r.File), Reason: r.Reason.Error()}})
		} else {
			_, err = fmt.Fprintf(out, "restored: %s: %v\n", s.file(r.File), r.Reason)
		}
		if err != nil {
			return err
		}
	}
	for _, d := range done.Dropped {
		if f.asJSON {
			err = writeJSON(out, struct {
				problemJSON
				First   uint64 `json:"firstRecord,omitzero"`
				Records uint64 `json:"records"`
			}{problemJSON{s.file(d.File), d.Offset, d.Reason.Error()}, d.First, d.Records})
		} else {
			_, err = fmt.Fprintf(out, "dropped: %s at %d: %d records from %d on: %v\n", s.file(d.File), d.Offset, d.Records, d.First, d.Reason)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes one value on one line.
func writeJSON(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}
