// Package kafkaevent publishes CloudEvents to Kafka and consumes them: it has a Producer, a BatchConsumer for handlers
// of batches, the GroupConsumer that it uses, for a worker with an offset tracker of its own, a Tailer, and the
// creation of topics.
//
// Kafka only transports events; the databases have the state. Everything here survives a broker that becomes
// unavailable, returns, or returns empty: topics are created again, and offsets of a topic that was replaced are
// dropped.
//
// Why so much is written by hand: docs/decisions/events.md#what-stays-written-by-hand-beside-sarama-and-the-sdk
package kafkaevent
