package kafkaevent

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
)

// Versions are the newest versions of requests that a broker knows, by the request's number in Kafka's protocol.
type Versions map[int16]int16

// Requests whose version shows the age of a broker.
const (
	fetch     = 1
	joinGroup = 11
)

// TooOld reports whether the broker is older than Apache Kafka 2.3, of which JobWeaver was never tried on any.
func (v Versions) TooOld() bool { return v[fetch] < 11 || v[joinGroup] < 5 }

// ReadVersions asks a broker once.
func ReadVersions(ctx context.Context, cfg Config) (versions Versions, err error) {
	err = bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		broker, err := client.Controller()
		if err != nil {
			return err
		}
		answer, err := broker.ApiVersions(&sarama.ApiVersionsRequest{})
		if err != nil {
			return err
		}
		versions = Versions{}
		for _, key := range answer.ApiKeys {
			versions[key.ApiKey] = key.MaxVersion
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the versions of the brokers: %w", err)
	}
	return versions, nil
}
