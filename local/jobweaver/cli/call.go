// Package cli has the parts that the commands of jobweaver share: requests to the gateway, responses as text, JSON or
// YAML, errors and exit codes.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// Call sends a request to the API, and prints the response in the format of --output. headers are pairs.
func Call[T any](
	cmd *cobra.Command, method, path string, body any, show func(io.Writer, T) error, headers ...string,
) (err error) {
	var sent []byte
	contentType := ""
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("write request: %w", err)
		}
		contentType = "application/json"
	}
	var answer T
	raw, err := API(cmd).Do(cmd.Context(), method, path, contentType, sent, &answer, headers...)
	if err != nil {
		return err
	}
	return Present(cmd, raw, func(w io.Writer) error { return show(w, answer) })
}

// Show gets a resource and prints it.
func Show[T any](cmd *cobra.Command, path string, show func(io.Writer, T) error) error {
	return Call(cmd, http.MethodGet, path, nil, show)
}

// Path makes the path of a resource from names that may need escaping.
func Path(parts ...string) string {
	text := "/api"
	for _, part := range parts {
		text += "/" + url.PathEscape(part)
	}
	return text
}
