// Package shuffle holds a test of the whole protocol in one process: the functions' handlers and
// the stores on a real PostgreSQL, with a bus in Kafka's place that delivers every event twice, out of
// order as far as Kafka may, and forgets what was said as if its speaker had been killed. However it
// shuffles, every job ends as it does when nothing goes wrong.
package shuffle
