// Package examples is programs to copy: functions for jobs of type FUNCTION in three languages, and a worker
// with a job type of its own. Its tests run each of them, and check that docs/functions.md quotes them as they are.
package examples
