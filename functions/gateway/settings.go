package gateway

import (
	"fmt"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/hooks"
	"github.com/jobweaver/jobweaver/functions/gateway/keys"
	"github.com/jobweaver/jobweaver/functions/gateway/pullworkers"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/reload"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// settings are the parts of the Config that New parses before it uses the database.
type settings struct {
	base         string
	limits       *edge.Limits
	rules        jobspec.Rules
	defaults     jobspec.TypeDefaults
	tokens       *access.Issuer
	bootstrapKey *apikey.Key
	callbackKeys *webhook.CallbackKeys
	ends, calls  *webhook.Outgoing
	sealer       *sealing.Sealer
	hooks        *reload.Files[hooks.Set]
	pull         *pullworkers.Instances
}

// readSettings checks a Config. An error begins with the name of the wrong setting.
func readSettings(cfg Config) (s settings, err error) {
	if cfg.Auth != AuthOn && cfg.Auth != AuthOff {
		return s, fmt.Errorf("AUTH: %q is neither on nor off", cfg.Auth)
	}
	if cfg.KeyMaxAge < 0 {
		return s, fmt.Errorf("KEY_MAX_AGE: %s is negative", cfg.KeyMaxAge)
	}
	if err := edge.CheckTraceURL(cfg.TraceURL); err != nil {
		return s, fmt.Errorf("TRACE_URL: %w", err)
	}
	s.rules = jobspec.Rules{Queues: cfg.Queues, JobTypes: cfg.JobTypes, CheckURL: outbound.CheckURL}
	if err := s.rules.Check(); err != nil {
		return s, err
	}
	for _, read := range []func() error{
		func() error { s.base, err = cfg.Public.Base(); return err },
		func() error { s.defaults, err = jobspec.ParseTypeDefaults(cfg.RetryPolicies); return err },
		func() error { s.limits, err = edge.NewLimits(cfg.Limits); return err },
		func() error { s.tokens, err = access.NewIssuer(cfg.OIDC); return err },
		func() error { s.bootstrapKey, err = keys.ParseBootstrapKey(cfg.BootstrapKey); return err },
		func() error {
			s.callbackKeys, err = webhook.NewCallbackKeys(cfg.Callbacks.Secrets.Reveal())
			return err
		},
		func() error { s.ends, err = webhook.NewOutgoing(cfg.Webhook, webhook.End); return err },
		func() error { s.calls, err = webhook.NewOutgoing(cfg.Webhook, webhook.Call); return err },
		func() error { s.sealer, err = sealing.New(cfg.Sealing); return err },
		func() error { s.hooks, err = hooks.Open(cfg.HooksFile); return err },
		func() error { s.pull, err = pullworkers.NewInstances(cfg.Pull, s.callbackKeys); return err },
	} {
		if err := read(); err != nil {
			return s, err
		}
	}
	return s, nil
}
