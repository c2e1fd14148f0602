package cli

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"unicode/utf16"

	"github.com/spf13/cobra"
)

// ReadFile reads a text file, or standard input if the name is -.
func ReadFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		text, err := io.ReadAll(cmd.InOrStdin())
		return plainText(text), err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usageError{err}
	}
	return plainText(text), nil
}

// plainText returns a text as UTF-8 without a byte order mark. PowerShell writes texts with that mark, or in UTF-16.
func plainText(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	var units []uint16
	for at := 2; at+1 < len(text); at += 2 {
		units = append(units, order.Uint16(text[at:]))
	}
	return []byte(string(utf16.Decode(units)))
}
