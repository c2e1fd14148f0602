package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Keeping is how long the brokers keep the records of a topic.
type Keeping struct {
	Topic     string        // its name at the brokers
	Policy    string        // cleanup.policy
	Retention time.Duration // retention.ms
	Segment   time.Duration // segment.ms: a record is deleted with its segment
}

// Forever stands for no limit.
const Forever = time.Duration(math.MaxInt64)

// Gone returns the age by which a record has been deleted, or Forever.
func (k Keeping) Gone() time.Duration {
	if !strings.Contains(k.Policy, "delete") || k.Retention > Forever-jobevent.BrokerLooks-k.Segment {
		return Forever
	}
	return k.Retention + k.Segment + jobevent.BrokerLooks
}

// Keepings asks the brokers once how long they keep the records of topics. It needs the right DescribeConfigs on them.
func Keepings(ctx context.Context, cfg Config, topics []string) (keepings []Keeping, err error) {
	err = bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true }) // otherwise it has no brokers
		if err != nil {
			return err
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return errors.Join(err, client.Close())
		}
		defer func() { _ = admin.Close() }() // and the client
		keepings, err = readKeepings(admin, cfg.ownNames(topics))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask how topics keep records: %w", err)
	}
	return keepings, nil
}

func readKeepings(admin sarama.ClusterAdmin, topics []string) ([]Keeping, error) {
	names := []string{"cleanup.policy", "retention.ms", "segment.ms"}
	asked := make([]*sarama.ConfigResource, len(topics))
	for i, topic := range topics {
		asked[i] = &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: names}
	}
	answers, err := admin.DescribeConfigs(asked, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	keepings := make([]Keeping, len(answers))
	for i, answer := range answers {
		if answer.ErrorCode != sarama.ErrNoError {
			return nil, fmt.Errorf("%s: %w", answer.Name, answer.ErrorCode)
		}
		settings := map[string]string{}
		for _, entry := range answer.Configs {
			settings[entry.Name] = entry.Value
		}
		keepings[i] = Keeping{
			Topic: answer.Name, Policy: settings["cleanup.policy"],
			Retention: age(settings["retention.ms"]), Segment: age(settings["segment.ms"]),
		}
	}
	return keepings, nil
}

// age reads milliseconds; -1 is Forever. The embedded broker may not know a setting at all.
func age(ms string) time.Duration {
	n, err := strconv.ParseInt(ms, 10, 64)
	switch {
	case ms == "":
		return 0
	case err != nil || n < 0 || n > Forever.Milliseconds():
		return Forever
	}
	return time.Duration(n) * time.Millisecond
}
