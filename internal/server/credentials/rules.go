// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/vfs"
)

// RulesFile holds the access rules of the namespace, keys in clear. The store's
// files are readable by their owner alone.
const RulesFile = "namespace.json"

// LoadRules reads the access rules. At the first start there are none: a root
// rule with random keys is made, which SaveRules has to keep. If no key is needed,
// that is left to the first start that needs one.
func LoadRules(fsys vfs.FS, needed bool) (rules access.Rules, fresh *access.Rule, err error) {
	rules, err = ReadRules(fsys)
	if !errors.Is(err, fs.ErrNotExist) {
		return rules, nil, err
	}
	if !needed {
		return nil, nil, nil
	}
	root := access.NewRule(access.RootRule, access.All)
	return access.Rules{root}, &root, nil
}

// ReadRules reads the access rules; fs.ErrNotExist means that none were made yet.
func ReadRules(fsys vfs.FS) (access.Rules, error) {
	b, err := ReadFile(fsys, RulesFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RulesFile, err)
	}
	rules, err := access.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RulesFile, err)
	}
	return rules, nil
}

// SaveRules keeps the access rules.
func SaveRules(fsys vfs.FS, rules access.Rules) error {
	b, err := rules.Encode()
	if err != nil {
		return err
	}
	if err := writeFile(fsys, RulesFile, b); err != nil {
		return fmt.Errorf("write %s: %w", RulesFile, err)
	}
	return nil
}

func ReadFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read: nothing to lose
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// writeFile puts a whole file in place, so that a crash leaves the old one or the
// new one.
func writeFile(fsys vfs.FS, name string, b []byte) error {
	draft := name + ".new"
	if err := fsys.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(draft)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(draft, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}
