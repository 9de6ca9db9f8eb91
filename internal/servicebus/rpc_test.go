// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"bufio"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// codes reads frames and passes on what they are, until the connection ends.
func (p *rawPeer) codes() <-chan frame.Code {
	codes := make(chan frame.Code, 100)
	go func() { // ends when the pipe is closed
		defer close(codes)
		in := bufio.NewReader(p.Conn)
		if _, err := in.Discard(8); err != nil { // the protocol header
			return
		}
		for {
			head := make([]byte, frame.HeaderSize)
			if _, err := io.ReadFull(in, head); err != nil {
				return
			}
			h := frame.ParseHeader(head)
			rest := make([]byte, int(h.Size)-len(head))
			if _, err := io.ReadFull(in, rest); err != nil {
				return
			}
			if code, _, _, err := frame.Parse(rest); err == nil {
				codes <- code
			}
		}
	}()
	return codes
}

// The disposition of a request leaves before its reply, on $cbs and on $management.
// uAMQP crashes when they come the other way around.
func TestRequestIsSettledBeforeItsReply(t *testing.T) {
	for node, request := range map[string]message.Draft{
		"$cbs": {
			Application: []message.Pair{
				{Name: "operation", Value: codec.String("put-token")}, {Name: "type", Value: codec.String("jwt")},
				{Name: "name", Value: codec.String("sb://localhost/q")},
			},
			Value: new(codec.String("token")),
		},
		"q/$management": {
			Application: []message.Pair{{Name: "operation", Value: codec.String("com.microsoft:peek-message")}},
			Value:       new(codec.Map(codec.String("from-sequence-number"), codec.Long(1), codec.String("message-count"), codec.Int(1))),
		},
	} {
		t.Run(node, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t).raw(t, 100)
				codes := p.codes()
				p.say(&frame.Attach{Name: "a", Handle: 0, Source: &frame.Source{}, Target: &frame.Target{Address: node}})
				p.say(&frame.Attach{Name: "b", Handle: 1, Role: frame.Receiver, SenderSettleMode: frame.SenderSettled,
					Source: &frame.Source{Address: node}, Target: &frame.Target{Address: "back"}})
				p.say(&frame.Flow{HasNextIncomingID: true, IncomingWindow: 100, HasHandle: true, Handle: 1,
					HasDeliveryCount: true, LinkCredit: 10, HasLinkCredit: true})
				synctest.Wait()
				request.MessageID, request.ReplyTo = codec.String("1"), "back"
				b := (&frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}).Append(frame.AppendHeader(nil, frame.TypeAMQP, 0))
				b = request.Encode(b)
				frame.SetSize(b, 0)
				p.write(b)
				synctest.Wait()
				p.say(&frame.Close{})
				got := slices.Collect(func(yield func(frame.Code) bool) {
					for c := range codes {
						if (c == frame.CodeDisposition || c == frame.CodeTransfer) && !yield(c) {
							return
						}
					}
				})
				if want := []frame.Code{frame.CodeDisposition, frame.CodeTransfer}; !slices.Equal(got, want) {
					t.Errorf("the request was answered with %v, want %v", got, want)
				}
			})
		})
	}
}

// A reply that is larger than its receiver takes becomes an error, and those behind it
// arrive.
func TestReplyThatItsReceiverCannotTake(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", amqp.NewMessage(make([]byte, 5000)))
	s := p.session()
	send, err := s.NewSender(p.ctx(), "q/$management", nil)
	if err != nil {
		t.Fatal(err)
	}
	receive, err := s.NewReceiver(p.ctx(), "q/$management", &amqp.ReceiverOptions{
		TargetAddress: "here", Credit: 10, MaxMessageSize: 2000, RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	if err != nil {
		t.Fatal(err)
	}
	mgmt := &rpc{p, send, receive, "here"}
	peek := map[string]any{"from-sequence-number": int64(0), "message-count": int32(1)}
	mgmt.manage("peek-message", peek, 400)
	peek["from-sequence-number"] = int64(100)
	mgmt.manage("peek-message", peek, 204)
}
