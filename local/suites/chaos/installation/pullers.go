package installation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
	"github.com/jobweaver/jobweaver/local/suites/chaos/pulled"
	"github.com/jobweaver/jobweaver/shared/client"
)

// Puller is the name of the program of a pull worker.
const Puller = "puller"

// Gateway is the name of a pull worker's gateway in the pairs of the network.
const Gateway = "gateway"

// The environment of a pull worker, beside that of the client.
const (
	PullerName    = "PULLER_NAME"
	PullerWitness = "PULLER_WITNESS"
)

const pullers = 2

// addPullers prepares the pull workers. Each has a gateway of its own, through a proxy. Of a jobweaver serve and its
// standby both have the load balancer.
func (h *Installation) addPullers(bin string) error {
	for n := range pullers {
		name, gateway := fmt.Sprintf("%s-%d", Puller, n+1), h.Gateways[n%len(h.Gateways)]
		address, err := url.Parse(gateway)
		if err != nil {
			return err
		}
		port, err := strconv.Atoi(address.Port())
		if err != nil {
			return err
		}
		if port, err = h.Net.listen(port, proxy.Always(h.Net.link(name, Gateway))); err != nil {
			return err
		}
		f, err := h.clocked(name, Puller, []string{filepath.Join(bin, Puller)}, []string{
			"JOBWEAVER_URL=http://" + loopback(port), PullerName + "=" + name, PullerWitness + "=" + h.Witness.Address,
		})
		if err != nil {
			return err
		}
		h.Pullers = append(h.Pullers, f)
	}
	return nil
}

// awaitPullers waits until the gateways accept the jobs of the pull workers.
func (h *Installation) awaitPullers(ctx context.Context) error {
	api := client.New(h.Gateways[0], "")
	return Within(ctx, startsWithin, func(ctx context.Context) (err error) {
		for _, jobType := range []string{pulled.Waiting.Type, pulled.Called.Type, pulled.Together.Type} {
			_, missing := api.JobTypes.Get(ctx, jobType)
			err = errors.Join(err, missing)
		}
		return err
	})
}
