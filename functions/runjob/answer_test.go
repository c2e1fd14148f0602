package runjob

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestAHandlersResultDecidesTheOutcome(t *testing.T) {
	h := newFixture(t)
	h.exec("ALTER TABLE blocks ADD CHECK (outputs::text NOT LIKE '%[[0]]%')")
	h.start(nil)
	waits := h.run("ANSWER", `{"wait": 60000000000}`)
	snoozes := h.run("ANSWER", `{"snooze": 30000000000}`)
	fails := h.run("ANSWER", `{"error": "no luck\u0000 today"}`)
	deep, odd := h.run("ANSWER", `{"depth": 9000}`), h.run("ANSWER", `{"depth": 2}`)
	h.order(waits, snoozes, fails, deep, odd)
	waiting, err := jobevent.DecodeAs[jobevent.Waiting](h.outcome(waits), jobevent.TypeWaiting)
	if err != nil || waiting.CallbackTimeoutMs != 60_000 || waiting.StartedAt.IsZero() {
		t.Errorf("waits: %+v, %v", waiting, err)
	}
	if got := h.failed(snoozes); got.Kind != jobevent.KindSnoozed || got.RetryAfterMs != 30_000 {
		t.Errorf("snoozes: %+v", got)
	}
	if got := h.failed(fails); got.ErrorCode != "WORKER.HANDLER_FAILED" || got.Message != "no luck today" || !got.Retryable {
		t.Errorf("fails: %+v", got)
	}
	if e := h.outcome(deep); e.Type() != jobevent.TypeCompleted {
		t.Errorf("deep output: %v", e)
	}
	if got := h.failed(odd); got.ErrorCode != "WORKER.INVALID_OUTPUT" || got.Retryable {
		t.Errorf("an output that PostgreSQL refuses: %+v", got)
	}
}

func TestAnAttemptOfAnUnansweredClaimRuns(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	run := h.run("SIMULATION", noop)
	_, err := w.store.Claim(t.Context(), w.id, []workerdb.Order{{
		Key: workerdb.Key{JobID: run.JobID, Attempt: 1}, TimeoutMs: 1000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.order(run)
	if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
}

func TestAnAttemptOfAnotherWorkerDoesNotStart(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	run := h.run("SIMULATION", noop)
	_, err := w.store.Claim(t.Context(), "other", []workerdb.Order{{
		Key: workerdb.Key{JobID: run.JobID, Attempt: 1}, TimeoutMs: 1000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.order(run)
	h.untilCommitted(1)
	if n := h.startsOf(run); n != 0 {
		t.Errorf("started %d times", n)
	}
}

func TestAWorkerServesSeveralQueues(t *testing.T) {
	h := newFixture(t)
	other := h.queue + "2"
	if err := kafkaevent.CreateTopics(t.Context(), h.kafka, jobevent.Topics([]string{other})); err != nil {
		t.Fatal(err)
	}
	h.start(func(c *Config, _ *timing) { c.Queues = append(c.Queues, other) })
	run := h.run("SIMULATION", noop)
	h.order(run)
	h.outcome(run)
	h.queue = other
	run = h.run("SIMULATION", noop)
	h.order(run)
	h.outcome(run)
	h.untilCommitted(1)
}

func TestARecordThatIsNotAnEventIsRejected(t *testing.T) {
	h := newFixture(t)
	cfg, err := h.kafka.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := sarama.NewSyncProducer(h.kafka.Brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = producer.Close() }()
	for _, value := range []sarama.Encoder{nil, sarama.StringEncoder("\xff\x00garbage")} {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: jobevent.RunTopic(h.queue), Value: value})
		if err != nil {
			t.Fatal(err)
		}
	}
	run := h.run("SIMULATION", noop)
	h.order(run)
	h.start(nil)
	h.outcome(run)
	h.until("both are rejected", func() bool { return h.kinds[jobevent.TypeRejected] == 2 })
	h.untilCommitted(3)
}

func TestAnInvalidCancelIsIgnored(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	<-w.cancels.Started()
	h.wantCancel(jobevent.Run{JobID: uuid.New(), Attempt: 1 << 40})
	h.wantCancel(jobevent.Run{JobID: uuid.New(), Attempt: -1})
	run := h.run("BLOCK", "")
	h.wantCancel(run)
	h.outcome(run)
}
