//go:build !linux

package handlers_test

import "errors"

func mountSmall(string) error { return errors.New("not on this system") }

func unmount(string) error { return nil }
