// SPDX-License-Identifier: Apache-2.0

package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/processor"
)

// Options are the settings of a store; nil is the default.
type Options struct {
	// GoNames makes the names of blobs those of the SDK for Go: as they are given, with
	// the port.
	GoNames bool
}

// New makes a store of a container, which has to exist.
func New(c *container.Client, o *Options) processor.CheckpointStore {
	s := &store{container: c}
	if o != nil {
		s.options = *o
	}
	return s
}

// Version has a client ask for another version of the service than the newest that it
// knows, such as 2017-11-09 for storage on Azure Stack Hub. It is one of the
// PerCallPolicies of [container.ClientOptions], so that it is in place before the request
// is signed.
func Version(version string) policy.Policy { return versionPolicy(version) }

type versionPolicy string

func (v versionPolicy) Do(r *policy.Request) (*http.Response, error) {
	// azblob writes it in lower case, and Set would add a second one.
	r.Raw().Header["x-ms-version"] = []string{string(v)}
	return r.Next()
}

// Names of metadata.
const (
	ownerID        = "ownerid"
	sequenceNumber = "sequencenumber"
	offset         = "offset"
)

// parallel is how many claims are under way at a time.
const parallel = 8

type store struct {
	container *container.Client
	options   Options
}

// directory returns where the blobs of a kind are.
func (s *store) directory(scope processor.Scope, kind string) string {
	namespace := scope.Namespace
	if s.options.GoNames {
		return path.Join(namespace, scope.Hub, scope.Group, kind) + "/"
	}
	if host, _, err := net.SplitHostPort(namespace); err == nil {
		namespace = host
	}
	return strings.ToLower(path.Join(namespace, scope.Hub, scope.Group, kind)) + "/"
}

// list calls each with the blobs of a directory, and returns the service's time.
func (s *store) list(ctx context.Context, directory string, each func(partition string, b *container.BlobItem) error) (time.Time, error) {
	pages := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &directory, Include: container.ListBlobsInclude{Metadata: true},
	})
	var now time.Time
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return now, err
		}
		if page.Date != nil {
			now = *page.Date
		}
		if page.Segment == nil {
			return now, errors.New("blobstore: the service answers without a list of blobs")
		}
		for _, b := range page.Segment.BlobItems {
			if b.Name == nil || b.Properties == nil || b.Properties.LastModified == nil || b.Properties.ETag == nil {
				return now, errors.New("blobstore: the service lists a blob without name, time or ETag")
			}
			if err := each(path.Base(*b.Name), b); err != nil {
				return now, fmt.Errorf("blobstore: %s: %w", *b.Name, err)
			}
		}
	}
	return now, nil
}

// value returns a value of metadata, whose names have no case.
func value(b *container.BlobItem, name string) (string, bool) {
	for k, v := range b.Metadata {
		if strings.EqualFold(k, name) && v != nil {
			return *v, true
		}
	}
	return "", false
}

func (s *store) ListOwnership(ctx context.Context, scope processor.Scope) ([]processor.Ownership, time.Time, error) {
	var out []processor.Ownership
	now, err := s.list(ctx, s.directory(scope, "ownership"), func(partition string, b *container.BlobItem) error {
		owner, _ := value(b, ownerID) // a record that was given up may have none
		out = append(out, processor.Ownership{
			Scope: scope, Partition: partition, Owner: owner, ETag: string(*b.Properties.ETag), Modified: *b.Properties.LastModified,
		})
		return nil
	})
	return out, now, err
}

func (s *store) ClaimOwnership(ctx context.Context, claims []processor.Ownership) ([]processor.Ownership, error) {
	results := make([]processor.Ownership, len(claims))
	errs := make([]error, len(claims))
	turns := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, c := range claims {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			results[i], errs[i] = s.claim(ctx, c)
		})
	}
	wg.Wait()
	var won []processor.Ownership
	for i, err := range errs {
		switch {
		case err == nil:
			won = append(won, results[i])
		case bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists, bloberror.BlobNotFound):
			errs[i] = nil // another was faster, or has deleted the record
		}
	}
	return won, errors.Join(errs...)
}

// claim writes one record.
func (s *store) claim(ctx context.Context, c processor.Ownership) (processor.Ownership, error) {
	b := s.container.NewBlockBlobClient(s.directory(c.Scope, "ownership") + c.Partition)
	metadata := map[string]*string{ownerID: &c.Owner}
	var tag *azcore.ETag
	var modified *time.Time
	if c.ETag != "" {
		old := azcore.ETag(c.ETag)
		r, err := b.SetMetadata(ctx, metadata, &blob.SetMetadataOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &old}},
		})
		if err != nil {
			return c, err
		}
		tag, modified = r.ETag, r.LastModified
	} else {
		nothing := azcore.ETagAny
		r, err := b.Upload(ctx, empty(), &blockblob.UploadOptions{
			Metadata:         metadata,
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &nothing}},
		})
		if err != nil {
			return c, err
		}
		tag, modified = r.ETag, r.LastModified
	}
	if tag == nil || modified == nil {
		return c, fmt.Errorf("blobstore: claim of partition %s: the service told no ETag or time", c.Partition)
	}
	c.ETag, c.Modified = string(*tag), *modified
	return c, nil
}

func (s *store) ListCheckpoints(ctx context.Context, scope processor.Scope) ([]processor.Checkpoint, error) {
	var out []processor.Checkpoint
	var bad []error // each of one partition, which the others do not wait for
	_, err := s.list(ctx, s.directory(scope, "checkpoint"), func(partition string, b *container.BlobItem) error {
		at, _ := value(b, offset)
		text, ok := value(b, sequenceNumber)
		if !ok {
			text = at // our broker's offsets are the same numbers
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			bad = append(bad, fmt.Errorf("blobstore: %s: sequence number %q is none", *b.Name, text))
			return nil
		}
		out = append(out, processor.Checkpoint{Scope: scope, Partition: partition, SeqNo: client.SeqNo(n), Offset: at})
		return nil
	})
	return out, errors.Join(append(bad, err)...)
}

// SetCheckpoint writes number and offset always: the SDKs read no checkpoint without both.
func (s *store) SetCheckpoint(ctx context.Context, c processor.Checkpoint) error {
	b := s.container.NewBlockBlobClient(s.directory(c.Scope, "checkpoint") + c.Partition)
	n := strconv.FormatInt(int64(c.SeqNo), 10)
	metadata := map[string]*string{sequenceNumber: &n, offset: &c.Offset}
	_, err := b.SetMetadata(ctx, metadata, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		_, err = b.Upload(ctx, empty(), &blockblob.UploadOptions{Metadata: metadata})
	}
	return err
}

func empty() io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(nil)) }
