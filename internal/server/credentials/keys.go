// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/vfs"
)

// ErrNoKeys means that no broker has made keys in a data directory yet.
var ErrNoKeys = errors.New("credentials: no key was made yet")

// Keys returns the rules of the namespace that are kept in a data directory. A broker
// may run on it.
func Keys(data string) (access.Rules, error) {
	rules, err := ReadRules(vfs.OS(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNoKeys, data)
	}
	return rules, err
}

// ChangeKey changes one of the rules that are kept in a data directory, and returns
// what it is then. A broker that runs on it goes on with the old one until it
// reads them again.
func ChangeKey(data, name string, change func(access.Rule) access.Rule) (_ access.Rule, err error) {
	if _, err := Keys(data); err != nil {
		return access.Rule{}, err
	}
	lock, err := lockRules(data)
	if err != nil {
		return access.Rule{}, fmt.Errorf("change the keys in %s: %w", data, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	rules, err := Keys(data)
	if err != nil {
		return access.Rule{}, err
	}
	at := slices.IndexFunc(rules, func(r access.Rule) bool { return strings.EqualFold(r.Name, name) })
	if at < 0 {
		var names []string
		for _, r := range rules {
			names = append(names, r.Name)
		}
		return access.Rule{}, fmt.Errorf("no rule %q is kept in %s; there is %s", name, filepath.Join(data, RulesFile), strings.Join(names, ", "))
	}
	rules[at] = change(rules[at])
	return rules[at], replaceRules(data, rules)
}

// rulesLock is locked by who changes the rules: two at a time would each make a key, and
// one of them would be lost. It is not RulesFile, of which each change makes a new one: who
// waits would lock the old one.
const rulesLock = "namespace.lock"

func lockRules(data string) (io.Closer, error) {
	lock, err := vfs.OS(data).Lock(rulesLock)
	if err != nil {
		return nil, err
	}
	if f, err := os.OpenFile(filepath.Join(data, rulesLock), os.O_RDWR, 0); err == nil {
		_ = keepOwner(f, filepath.Join(data, RulesFile)) // else only this user can do it again
		f.Close()
	}
	return lock, nil
}

// replaceRules writes the rules for whom the file belongs to, and for who else could read
// it: the administrator who changes them may be another than the one that the broker runs
// as, which has to read them. A crash leaves the old file or the new one.
func replaceRules(data string, rules access.Rules) error {
	b, err := rules.Encode()
	if err != nil {
		return err
	}
	name := filepath.Join(data, RulesFile)
	// There is one name for it, so that what a change leaves that is killed goes with
	// the next one: it has keys in it that are in use.
	if err := os.Remove(name + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	draft, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = draft.Write(b)
	if err == nil {
		err = keepOwner(draft, name)
	}
	if err == nil {
		err = draft.Sync()
	}
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	if synced := vfs.OS(data).SyncDir("."); synced != nil {
		return fmt.Errorf("the new keys may be lost in a crash: %w", synced)
	}
	return nil
}
