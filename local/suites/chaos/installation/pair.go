package installation

import (
	"fmt"
	"path/filepath"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/suites/balancer"
)

// serve is the name of the program, and of a process, that runs all functions.
const serve = "serve"

// pair prepares a jobweaver serve and its standby, behind a load balancer. They make the databases and the roles.
func (h *Installation) pair(bin string) error {
	var both []int
	for range 2 {
		port, err := freeport.Pick()
		if err != nil {
			return err
		}
		both = append(both, port)
	}
	h.balancer = balancer.Start(addresses(both)...)
	h.Gateways = []string{h.balancer.URL}
	for n, port := range both {
		name := fmt.Sprintf("%s-%d", serve, n+1)
		address, err := h.Postgres.urlOf(name, "postgres", h.Postgres.password, "postgres")
		if err != nil {
			return err
		}
		command := []string{filepath.Join(bin, serve), "serve"}
		if err := h.add(name, serve, port, command, "DATABASE_URL="+address); err != nil {
			return err
		}
	}
	return nil
}
