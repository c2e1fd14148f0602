package proxy

import (
	"encoding/binary"
	"errors"
	"io"
)

// ByClientID routes connections of Kafka's protocol by the client id in their first request, so that all clients can
// share one advertised listener.
func ByClientID(choose func(clientID string) *Link) Route {
	return func(client io.Reader) (*Link, []byte, error) {
		// Size, api key, api version and correlation id, then the length of the client id, which may be -1.
		const fixed = 4 + 2 + 2 + 4 + 2
		begun := make([]byte, fixed)
		if _, err := io.ReadFull(client, begun); err != nil {
			return nil, nil, err
		}
		length := int16(binary.BigEndian.Uint16(begun[fixed-2:]))
		if length > 1000 {
			return nil, nil, errors.New("no Kafka client")
		}
		id := make([]byte, max(length, 0))
		if _, err := io.ReadFull(client, id); err != nil {
			return nil, nil, err
		}
		return choose(string(id)), append(begun, id...), nil
	}
}
