// Package attacks holds SECURITY.md to its word: each attack of its table is tried by a test that there is.
package attacks
