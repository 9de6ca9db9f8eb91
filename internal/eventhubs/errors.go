// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"errors"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
)

// groupMemory is the text of broker.ErrGroupMemory.
const groupMemory = "The broker has no memory for more members, claims and checkpoints of consumer groups (limits.storedMemory)."

// conditions are how errors of hubs are reported to peers.
var conditions = []condition.Condition{
	// The Go SDK tries again and again after 400, and gives up at 404.
	{Err: broker.ErrPartition, Name: names.ArgumentOutOfRange, Status: condition.StatusNotFound},
	{Err: broker.ErrGroupPartition, Name: names.ArgumentOutOfRange, Status: condition.StatusNotFound},
	{Err: broker.ErrUnavailable, Name: names.ServerBusy, Status: condition.StatusUnavailable, Text: "The events of '{entity}' cannot be reached. The broker's log says why."},
	{Err: broker.ErrOutOfOrder, Name: names.OutOfOrderSequence, Status: condition.StatusBadRequest,
		Text: "The sequence number of the batch does not follow that of the batch before it."},
	{Err: broker.ErrProducerStolen, Name: names.ProducerStolen, Status: condition.StatusConflict,
		Text: "A producer with the same id and a higher epoch has been opened."},
	{Err: broker.ErrReaderClosed, Name: names.OperationCancelled, Status: condition.StatusUnavailable, Text: "The receiver was closed."},
	{Err: broker.ErrFenced, Name: names.Fenced, Status: condition.StatusConflict},
	{Err: broker.ErrBackwards, Name: names.Backwards, Status: condition.StatusConflict},
	{Err: broker.ErrUnknownMember, Name: names.UnknownMember, Status: condition.StatusNotFound},
	{Err: broker.ErrCoordinated, Name: names.Coordinated, Status: condition.StatusConflict},
	{Err: broker.ErrTaken, Name: endpoint.CondStolen, Status: condition.StatusGone, Text: "Another process has joined '{entity}' with the ID of this member."},
	{Err: broker.ErrMembers, Name: endpoint.CondResourceLimitExceeded, Status: condition.StatusForbidden},
	{Err: broker.ErrGroupMemory, Name: endpoint.CondResourceLimitExceeded, Status: condition.StatusForbidden, Text: groupMemory},
	{Err: broker.ErrHubMemory, Name: endpoint.CondResourceLimitExceeded, Status: condition.StatusForbidden, Text: "The broker has no memory for more idempotent producers (limits.storedMemory)."},
	{Err: broker.ErrMemberName, Name: names.ArgumentError, Status: condition.StatusBadRequest},
	{Err: broker.ErrNotOwned, Name: endpoint.CondNotAllowed, Status: condition.StatusBadRequest},
	{Err: message.ErrFormat, Name: endpoint.CondNotImplemented, Status: condition.StatusUnsupported},
	{Name: endpoint.CondStolen, Status: condition.StatusGone},
	{Name: names.InvalidOffset, Status: condition.StatusBadRequest},
	{Name: names.ArgumentOutOfRange, Status: condition.StatusBadRequest},
}

// readerError translates an error of a reader, or of a checkpoint. The texts about other readers are the
// service's: clients show and compare them.
func readerError(err error) error {
	if e, ok := errors.AsType[*broker.EpochError](err); ok {
		return endpoint.Errorf(endpoint.CondStolen, "%s", e.Error())
	}
	if e, ok := errors.AsType[*broker.ReadersError](err); ok {
		return endpoint.Errorf(endpoint.CondResourceLimitExceeded, "%s", e.Error())
	}
	if e, ok := errors.AsType[*broker.PositionError](err); ok {
		return endpoint.Errorf(names.ArgumentOutOfRange, "%s", e.Error())
	}
	return err
}
