// Package kafkaevent carries CloudEvents in and out of Kafka: a Producer, a BatchConsumer for
// handlers that take batches, the GroupConsumer beneath it for a worker that keeps its own offsets,
// a Tailer, and the creation of topics.
//
// Kafka is transport, never truth. Everything here outlives a broker that goes away, comes back, or
// comes back empty: topics are created again, offsets of a topic that is not the same one any more
// are forgotten.
package kafkaevent
