// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// store is the blob storage: a document for each home.
//
// Save replaces the version that was loaded. If someone else has replaced it meanwhile, it
// returns errReplaced and changes nothing. So an instance that was stopped for a while and
// does not know yet that it has lost its partitions cannot undo what their new owner wrote.
type store interface {
	load(ctx context.Context, home int) (aggregate, version, error)
	save(ctx context.Context, a aggregate, replaces version) (version, error)
}

// version names a state of a document; "" is none.
type version string

var errReplaced = errors.New("another instance has replaced the document")

// openStore opens the storage at a place: a directory, or the connection string of a
// storage account.
func openStore(ctx context.Context, at string) (store, error) {
	if isConnectionString(at) {
		return openBlobs(ctx, at)
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return nil, err
	}
	return dirStore(at), nil
}

// blobName is the name of a home's document. Directories of a thousand are easier to look at.
func blobName(home int) string { return fmt.Sprintf("homes/%03d/%d.json", home/1000, home) }

// dirStore keeps documents as files of a directory, which the instances on a machine share.
type dirStore string

func (d dirStore) path(home int) string {
	return filepath.Join(string(d), filepath.FromSlash(blobName(home)))
}

func (d dirStore) load(_ context.Context, home int) (aggregate, version, error) {
	text, err := os.ReadFile(d.path(home))
	if errors.Is(err, fs.ErrNotExist) {
		return aggregate{Home: home, SeqNo: -1}, "", nil
	}
	var a aggregate
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return aggregate{}, "", fmt.Errorf("home %d: %w", home, err)
	}
	return a, versionOf(a), nil
}

// versionOf is the version of a document in a directory: each has another last event.
func versionOf(a aggregate) version { return version(fmt.Sprintf("%s/%d", a.Partition, a.SeqNo)) }

func (d dirStore) save(ctx context.Context, a aggregate, replaces version) (version, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	path := d.path(a.Home)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	// The lock makes comparing and replacing one step. It ends with the process.
	unlock, err := lockFile(filepath.Join(filepath.Dir(path), ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	switch _, now, err := d.load(ctx, a.Home); {
	case err != nil:
		return "", err
	case now != replaces:
		return "", fmt.Errorf("home %d: %w", a.Home, errReplaced)
	}
	// Readers see the old document or the new one, and never a part.
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return "", err
	}
	return versionOf(a), os.Rename(path+".new", path)
}
