package kafkaevent

import (
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Callers use the names of jobevent. At the brokers, topics, groups and clients have those of the installation: only
// this package knows them.

// own returns topics with their names at the brokers.
func (c Config) own(topics []jobevent.Topic) []jobevent.Topic {
	topics = slices.Clone(topics)
	for i := range topics {
		topics[i].Name = c.AtBrokers(topics[i].Name)
	}
	return topics
}

// ownNames returns the names of topics at the brokers.
func (c Config) ownNames(topics []string) []string {
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = c.AtBrokers(topic)
	}
	return names
}

// AtBrokers returns the name of a topic or a group at the brokers.
func (c Config) AtBrokers(name string) string { return c.Installation.InKafka(name) }

// bare returns the names, as callers use them, of those topics at the brokers that belong to the installation.
func (c Config) bare(own []string) (topics []string) {
	for _, name := range own {
		if topic, is := c.Installation.FromKafka(name); is {
			topics = append(topics, topic)
		}
	}
	return topics
}

// bareName is bare of one topic of the installation.
func (c Config) bareName(own string) string {
	name, is := c.Installation.FromKafka(own)
	if !is {
		return own
	}
	return name
}
