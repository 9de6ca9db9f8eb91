// SPDX-License-Identifier: Apache-2.0

package vfs

import "fmt"

// faultFile is an open file of a Fault.
type faultFile struct {
	File
	f    *Fault
	name string
}

func (ff *faultFile) ReadAt(b []byte, off int64) (int, error) {
	if err := ff.f.call(OpRead, ff.name); err != nil {
		return 0, err
	}
	return ff.File.ReadAt(b, off)
}

func (ff *faultFile) WriteAt(b []byte, off int64) (int, error) {
	if err := ff.f.call(OpWrite, ff.name); err != nil {
		return 0, err
	}
	size, err := ff.Size()
	if err != nil {
		return 0, err
	}
	grow := max(0, off+int64(len(b))-size)
	if got := ff.f.take(grow); got < grow {
		n := max(0, int64(len(b))-(grow-got))
		done, err := ff.File.WriteAt(b[:n], off)
		if err != nil {
			return done, err
		}
		return done, fmt.Errorf("write %s: %w", ff.name, ErrNoSpace)
	}
	return ff.File.WriteAt(b, off)
}

func (ff *faultFile) Sync() error {
	if err := ff.f.call(OpSync, ff.name); err != nil {
		if f, ok := ff.File.(*memFile); ok {
			f.failSync()
		}
		return err
	}
	return ff.File.Sync()
}

func (ff *faultFile) Truncate(size int64) error {
	if err := ff.f.call(OpTruncate, ff.name); err != nil {
		return err
	}
	old, err := ff.Size()
	if err != nil {
		return err
	}
	if err := ff.File.Truncate(size); err != nil {
		return err
	}
	ff.f.give(max(0, old-size))
	return nil
}

func (ff *faultFile) Allocate(size int64) error {
	if err := ff.f.call(OpAllocate, ff.name); err != nil {
		return err
	}
	old, err := ff.Size()
	if err != nil {
		return err
	}
	grow := max(0, size-old)
	got := ff.f.take(grow)
	if err := ff.File.Allocate(size - (grow - got)); err != nil {
		return err
	}
	if got < grow {
		return fmt.Errorf("allocate %s: %w", ff.name, ErrNoSpace)
	}
	return nil
}
