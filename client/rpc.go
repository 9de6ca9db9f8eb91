// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// rpc is a pair of links to a node that answers requests: $cbs or $management.
type rpc struct {
	out *link
	in  *inbox
}

// openRPC attaches both links of the node at address.
func openRPC(ctx context.Context, c *connection, address string) (*rpc, error) {
	replyTo := "reply-" + rand.Text()
	settled := amqp.SenderSettleModeSettled
	in, err := c.openReceiver(ctx, address, &amqp.ReceiverOptions{
		TargetAddress:             replyTo,
		RequestedSenderSettleMode: &settled,
		Credit:                    inboxCredit,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", address, err)
	}
	// Replies find their way by the receiver's target address within one
	// session, so the sender joins the receiver's.
	out, err := in.session.NewSender(ctx, address, nil)
	if err != nil {
		_ = in.close(ctx) // the reason above is the one that counts
		return nil, fmt.Errorf("open %s: %w", address, err)
	}
	return &rpc{
		out: &link{conn: c, session: in.session, sender: out},
		in:  newInbox(in, replyTo, ""),
	}, nil
}

func (r *rpc) usable() bool { return r.out.usable() && r.in.usable() }

// call sends a request and waits for its reply; a reply that refuses is an error.
func (r *rpc) call(ctx context.Context, request *amqp.Message) (*amqp.Message, error) {
	id := rand.Text()
	request.Properties = &amqp.MessageProperties{MessageID: id, ReplyTo: &r.in.address}
	wait, err := r.in.expect(id)
	if err != nil {
		return nil, err
	}
	defer r.in.forget(id)
	if err := r.out.send(ctx, request); err != nil {
		return nil, err
	}
	reply, err := r.in.await(ctx, wait)
	if err != nil {
		return nil, err
	}
	return reply, refusal(reply)
}

// refusal reads the status of a reply. Brokers spell its properties in two ways.
func refusal(reply *amqp.Message) error {
	p := reply.ApplicationProperties
	status, ok := integer(either(p, names.StatusCodeDashed, names.StatusCode))
	if !ok {
		return fmt.Errorf("client: reply without a status")
	}
	if status >= 200 && status < 300 {
		return nil
	}
	condition := either(p, names.ErrorConditionDashed, names.ErrorCondition)
	e := &statusError{status: int(status)}
	if condition != nil {
		e.condition = fmt.Sprint(condition)
	}
	e.description, _ = either(p, names.StatusTextDashed, names.StatusText).(string)
	return e
}

func either(properties map[string]any, a, b string) any {
	if v := properties[a]; v != nil {
		return v
	}
	return properties[b]
}
