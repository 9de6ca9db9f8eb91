// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

// container is where the documents are in a storage account.
const container = "homesecurity"

func isConnectionString(at string) bool { return strings.Contains(at, "AccountName=") }

// blobStore keeps documents in Azure Blob storage, or in Azurite. The ETag of a blob is the
// version of its document.
type blobStore struct{ client *azblob.Client }

func openBlobs(ctx context.Context, connectionString string) (store, error) {
	c, err := azblob.NewClientFromConnectionString(connectionString, nil)
	if err != nil {
		return nil, err
	}
	if _, err := c.CreateContainer(ctx, container, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil, fmt.Errorf("make the container: %w", err)
	}
	return blobStore{c}, nil
}

func (b blobStore) load(ctx context.Context, home int) (aggregate, version, error) {
	got, err := b.client.DownloadStream(ctx, container, blobName(home), nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return aggregate{Home: home, SeqNo: -1}, "", nil
	}
	if err != nil {
		return aggregate{}, "", fmt.Errorf("home %d: %w", home, err)
	}
	defer got.Body.Close()
	var a aggregate
	if err := json.NewDecoder(got.Body).Decode(&a); err != nil {
		return aggregate{}, "", fmt.Errorf("home %d: %w", home, err)
	}
	return a, version(*got.ETag), nil
}

func (b blobStore) save(ctx context.Context, a aggregate, replaces version) (version, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	var only blob.ModifiedAccessConditions
	if tag := azcore.ETag(replaces); tag != "" {
		only.IfMatch = &tag
	} else {
		none := azcore.ETagAny
		only.IfNoneMatch = &none
	}
	saved, err := b.client.UploadBuffer(ctx, container, blobName(a.Home), text, &azblob.UploadBufferOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &only},
	})
	switch {
	case bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists):
		return "", fmt.Errorf("home %d: %w", a.Home, errReplaced)
	case err != nil:
		return "", fmt.Errorf("home %d: %w", a.Home, err)
	}
	return version(*saved.ETag), nil
}
