package doctor

import (
	"context"
	"strings"
)

func topics(_ context.Context, l *look) {
	b := l.brokers
	<-b.done
	if len(b.cfg.Brokers) == 0 {
		l.fact("no brokers: events pass through the broker in serve, which makes its topics")
		return
	}
	at := strings.Join(b.cfg.Brokers, ",")
	if b.away != nil {
		l.find("KAFKA_BROKERS", "the brokers at "+at+" cannot be used: "+b.away.Error(),
			"start them, or correct KAFKA_BROKERS, KAFKA_TLS_… and KAFKA_SASL_…; the user needs Describe on the topics")
		return
	}
	l.fact("the brokers at %s answer", at)
	for _, topic := range b.missing {
		l.find(topic.Name, "the topic does not exist", "run jobweaver topics create with the same QUEUES")
	}
	for _, d := range b.differ {
		do := "change it at the brokers (docs/operations.md#partitions)"
		if d.Harmful {
			do = "change it at the brokers, or delete the topic while nothing runs and run jobweaver topics create"
		}
		l.find(d.Topic, d.Is, do)
	}
	if b.unseen != nil {
		l.unseen("how the topics are: %v", b.unseen)
	}
}
