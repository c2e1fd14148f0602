package keys

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

type webhookSecretsBody struct {
	OwnerID *string  `json:"ownerId"`
	End     []string `json:"end"`
	Call    []string `json:"call"`
}

// WebhookSecrets is the endpoint of the keys with which receivers verify messages of JobWeaver.
type WebhookSecrets struct {
	Ends, Calls *webhook.Outgoing
	Audit       *audit.Log
}

// Get is GET /api/webhook-secrets: the keys with which the owner's receivers verify.
func (w *WebhookSecrets) Get(c *gin.Context) error {
	q := edge.NewQuery(c)
	asked := q.Checked("ownerId", apibody.CheckOwner)
	if err := q.Close("ownerId"); err != nil {
		return err
	}
	p := access.Of(c.Request.Context())
	owner := p.Owner
	if asked != "" && asked != owner {
		if !edge.IsInstallation(c) {
			return apierror.New(apierror.Forbidden, "only an admin of the installation sees another owner's webhook secrets")
		}
		owner = asked
	}
	if err := w.Audit.EnterReadingOfSecrets(c, owner); err != nil {
		return err
	}
	body := webhookSecretsBody{jobview.Given(owner), w.Ends.Secrets(owner), w.Calls.Secrets(owner)}
	return edge.Answer(c, http.StatusOK, body)
}
