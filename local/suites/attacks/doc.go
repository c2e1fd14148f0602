// Package attacks checks that each attack in SECURITY.md has a test that exists and cannot be skipped.
package attacks
