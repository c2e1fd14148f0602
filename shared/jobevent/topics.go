package jobevent

import "time"

// The topics. A queue other than the default has a topic of its own, see RunTopic.
const (
	TopicCreated       = "job-created"
	TopicRun           = "run-job"
	TopicEnded         = "attempt-ended"
	TopicDeadLetter    = "job-dead-letter"
	TopicStatus        = "job-status"   // for anyone, see StatusEvents
	TopicStatuses      = "job-statuses" // the others, for projection
	TopicCommand       = "job-command"
	TopicAttemptCancel = "attempt-cancel"
	TopicAttemptLog    = "attempt-log"
	TopicHeartbeat     = "worker-heartbeat"

	TopicControlApplied = "control-applied"
)

// DefaultQueue is the queue of a job that names none.
const DefaultQueue = "default"

const (
	// RunPartitions is how many partitions each run-job topic has at least, and so how many workers can share a queue.
	RunPartitions = 12
	// MaxRunPartitions is the most partitions that a run-job topic may have.
	MaxRunPartitions = 1000
)

// The retention of the topics. Kafka is only the transport; a week is for people who look back. A record is deleted
// with its segment, so it may be read for SegmentAge longer, and until the broker checks. Rows that fence an old record
// must outlive RecordsGone.
const (
	MaxRetention       = 7 * 24 * time.Hour
	SegmentAge         = 12 * time.Hour
	BrokerLooks        = time.Hour // how often, at the latest, the broker checks for segments to delete
	RecordsGone        = MaxRetention + SegmentAge + BrokerLooks
	statusesRetention  = 24 * time.Hour // what is lost is asked for again
	heartbeatRetention = time.Hour
)

// Topic has the settings of a topic.
type Topic struct {
	Name       string
	Partitions int32
	Compacted  bool
	Retention  time.Duration // 0 for a compacted topic
}

// RunTopic is the topic from which the workers of a queue take their attempts.
func RunTopic(queue string) string {
	if queue == "" || queue == DefaultQueue {
		return TopicRun
	}
	return TopicRun + "." + queue
}

// RunGroup is the consumer group of the workers of a queue.
func RunGroup(queue string) string { return "jobweaver-runjob-" + queue }

// Topics returns all topics, with a run-job topic for each queue.
func Topics(queues []string) []Topic {
	topics := []Topic{
		{Name: TopicCreated, Partitions: 3, Retention: MaxRetention},
		{Name: TopicEnded, Partitions: 3, Retention: MaxRetention},
		{Name: TopicDeadLetter, Partitions: 1, Retention: MaxRetention},
		{Name: TopicStatus, Partitions: 3, Compacted: true},
		{Name: TopicStatuses, Partitions: 3, Retention: statusesRetention},
		{Name: TopicCommand, Partitions: 3, Retention: MaxRetention},
		{Name: TopicAttemptCancel, Partitions: 1, Retention: heartbeatRetention},
		{Name: TopicAttemptLog, Partitions: 3, Retention: MaxRetention},
		{Name: TopicHeartbeat, Partitions: 1, Retention: heartbeatRetention},
		{Name: TopicControlApplied, Partitions: 1, Retention: MaxRetention},
		{Name: TopicRun, Partitions: RunPartitions, Retention: MaxRetention},
	}
	seen := map[string]bool{TopicRun: true}
	for _, queue := range queues {
		name := RunTopic(queue)
		if !seen[name] {
			seen[name] = true
			topics = append(topics, Topic{Name: name, Partitions: RunPartitions, Retention: MaxRetention})
		}
	}
	return topics
}
