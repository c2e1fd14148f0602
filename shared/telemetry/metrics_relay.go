package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	relayRows = counter("relay_rows_total",
		"Rows of an outbox that were taken out of it: accepted by the gateway, or rejected; sum.", "database", "outcome")
	relayFailures = counter("relay_failures_total",
		"Passes over an outbox that failed for its database or for the gateway, and are made again; sum.", "database", "at")
	relayWaiting = gauge("relay_waiting_rows",
		"Rows that wait in an outbox, counted to 10,000; max, since every replica reports the whole.", "database")
	relayRejected = gauge("relay_rejected_rows",
		"Rejected rows that an outbox keeps, counted to 10,000; max, since every replica reports the whole.", "database")
	relayOldest = gauge("relay_oldest_age_seconds",
		"How long ago the oldest row that waits was inserted; max, since every replica reports the whole.", "database")
)

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{Namespace: "jobweaver", Name: name, Help: help}, labels)
}

// Where a pass over an outbox can fail.
const (
	RelayAtDatabase = "database"
	RelayAtGateway  = "gateway"
)

// Relayed counts what a pass has taken out of the outbox of a database.
func Relayed(database string, accepted, rejected int) {
	relayRows.WithLabelValues(database, "accepted").Add(float64(accepted))
	relayRows.WithLabelValues(database, "rejected").Add(float64(rejected))
}

// RelayFailed counts a pass that failed; at is one of the constants.
func RelayFailed(database, at string) { relayFailures.WithLabelValues(database, at).Inc() }

// Outbox reports the state of the outbox of a database.
func Outbox(database string, waiting, rejected int, oldest time.Duration) {
	relayWaiting.WithLabelValues(database).Set(float64(waiting))
	relayRejected.WithLabelValues(database).Set(float64(rejected))
	relayOldest.WithLabelValues(database).Set(oldest.Seconds())
}
