// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/broker"
)

// Texts that clients and their tests look for.
const (
	textLockLost = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, " +
		"or was received by a different receiver instance."
	textSessionLockLost = "The session lock was lost. Request a new session receiver."
	textSessionRequired = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver."
	textNoSession       = "The message does not have a session id, which the entity requires."
)

// conditions are how errors of queues and sessions are reported to peers.
var conditions = []condition.Condition{
	{Err: broker.ErrNoPropertySpace, Name: names.ServerBusy, Status: condition.StatusUnavailable, Text: "The broker's disk is full: properties cannot be merged into a message. " +
		"Settle it without them, or try again later; its lock holds."},
	{Err: broker.ErrUnreadable, Name: names.MessageNotFound, Status: condition.StatusNotFound, Text: "The message cannot be read from the disk of the broker. It is among the dead letters of '{entity}'."},
	{Err: broker.ErrSessionRequired, Name: endpoint.CondNotAllowed, Status: condition.StatusBadRequest, Text: textNoSession},
	{Err: broker.ErrLockLost, Name: names.MessageLockLost, Status: condition.StatusGone, Text: textLockLost},
	{Err: broker.ErrSessionLockLost, Name: names.SessionLockLost, Status: condition.StatusGone, Text: textSessionLockLost},
	{Err: broker.ErrSessionLocked, Name: names.SessionCannotBeLocked, Status: condition.StatusGone, Text: "The requested session cannot be accepted. It may be locked by another receiver."},
	{Err: broker.ErrMessageNotFound, Name: names.MessageNotFound, Status: condition.StatusNotFound, Text: "The message could not be found on '{entity}'."},
	{Name: names.SessionNotFound, Status: condition.StatusNotFound},
}
