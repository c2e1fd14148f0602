package gateway

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/pullworkers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/publicurl"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Config has the settings of the gateway, and the functions that its host provides.
type Config struct {
	Auth string `envconfig:"AUTH" default:"on" desc:"off: no authentication; allowed only if HTTP listens on a loopback address"`

	BootstrapKey secret.Text `envconfig:"BOOTSTRAP_API_KEY" desc:"an administrator's API key of the installation, stored at the start unless it was revoked"`

	KeyMaxAge time.Duration `envconfig:"KEY_MAX_AGE" desc:"longest lifetime of an API key that is made or rotated from now on, such as 2160h: a key without expiresAt gets it, and a later expiresAt is refused; 0: keys may live forever"`

	JobTypes []string `envconfig:"JOB_TYPES" desc:"job types beside the built-in ones; * allows every name"`
	Queues   []string `ignored:"true"` // that a job may name

	Aliases        bool `envconfig:"ALIASES" default:"true" desc:"false: the paths and names of other systems are not known"`
	AliasCallbacks bool `envconfig:"ALIAS_CALLBACKS" desc:"true: POST /jobs/callback needs neither attempt nor secret; any client that reaches it can end a job that waits for a callback"`

	AuditReads bool `envconfig:"AUDIT_READS" desc:"true: the audit log also records reads of payloads, outputs and log lines"`

	TraceURL string `envconfig:"TRACE_URL" desc:"URL of a trace in your trace UI, such as https://jaeger.example.org/trace/{traceId}, to which the dashboard links each job"`

	HooksFile string `envconfig:"HOOKS_FILE" desc:"YAML file of the hooks, by which signed requests of other systems to /hooks/<name> become jobs"`

	RetryPolicies string `envconfig:"RETRY_POLICIES" desc:"JSON: for a job type, or * for all types, the maxRetryCount, retryPolicy and timeoutMs of jobs whose request has none, such as {\"*\": {\"maxRetryCount\": 5}, \"EMAIL\": {\"timeoutMs\": 60000}}"`

	Public    publicurl.Config       `ignored:"true"` // read as separate parts
	Callbacks webhook.CallbackConfig `ignored:"true"`
	Webhook   webhook.Config         `ignored:"true"`
	Limits    edge.LimitsConfig      `ignored:"true"`
	Sealing   sealing.Config         `ignored:"true"`
	OIDC      access.OIDCConfig      `ignored:"true"`
	Pull      pullworkers.Config     `ignored:"true"`

	// Broker reports whether events can be published at the moment. Only the health endpoint uses it.
	Broker func(context.Context) error `ignored:"true"`
	// Redrive publishes a rejected record on its topic again.
	Redrive funchost.Redrive `ignored:"true"`
	// Topics creates and deletes the topics of queues.
	Topics funchost.QueueTopics `ignored:"true"`
	// Lags reads how far functions lag behind their topics; nil: events go through a sink.
	Lags funchost.Lags `ignored:"true"`
}

// Parts returns the structs into which the environment is read.
func (c *Config) Parts() []any {
	return []any{c, &c.Public, &c.Callbacks, &c.Webhook, &c.Limits, &c.Sealing, &c.OIDC, &c.Pull}
}
