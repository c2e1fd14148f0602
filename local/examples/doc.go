// Package examples has programs to copy: functions for jobs of type FUNCTION in three languages and six web frameworks,
// and a worker with its own job type. Its tests run each of them, and check that docs/functions.md quotes them
// correctly.
package examples
