// Package shuffle tests the whole protocol in one process: the functions' handlers and the stores on a real
// PostgreSQL, with a bus in place of Kafka. The bus delivers every event twice, as far out of order as Kafka may, and
// drops published events as if their publisher had been killed. In whatever order it delivers, every job ends as it
// does without faults.
package shuffle
