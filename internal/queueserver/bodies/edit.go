// SPDX-License-Identifier: Apache-2.0

package bodies

import "github.com/triagemq/triagemq/internal/message"

// Edit returns a message with changed properties. It fails if the message grows beyond
// a limit, or a consumer could make a message grow with each delivery. A message may be
// beyond a limit before: by the reason of a dead letter, or from an earlier version.
func Edit(m *message.Message, changes []message.Change) ([]byte, error) {
	raw := m.Edit(message.Edit{Properties: changes})
	out, err := message.ParseStored(raw) // Message.Edit has checked the changes
	if err != nil {
		return nil, err
	}
	if err := out.CheckLimits(); err != nil && len(raw) > m.Size() {
		return nil, err
	}
	return raw, nil
}
