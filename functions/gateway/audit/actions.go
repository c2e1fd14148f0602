package audit

import "maps"

// actions names the action that the audit log records for each route that changes something. The parameters of the
// path name a subject that is not a job.
var actions = map[string]string{
	"POST /api/jobs":                                  actionSubmit,
	"POST /api/jobs/batch":                            actionSubmit,
	"POST /events":                                    actionSubmit,
	"POST /hooks/:name":                               "hook.submit",
	"POST /api/jobs/:jobId/cancel":                    "job.cancel",
	"POST /api/jobs/:jobId/retry":                     "job.retry",
	"POST /api/jobs/:jobId/reschedule":                "job.reschedule",
	"PATCH /api/jobs/:jobId":                          "job.change",
	"POST /api/jobs/:jobId/run-again":                 "job.run-again",
	"DELETE /api/jobs/:jobId":                         "job.delete",
	"POST /api/jobs/:jobId/deliveries/:version/retry": "delivery.retry",
	"POST /api/operations":                            "operation.create",
	"POST /api/operations/:operationId/abort":         "operation.abort",
	"POST /api/batches":                               "batch.create",
	"POST /api/batches/:batchId/close":                "batch.close",
	"POST /api/batches/:batchId/cancel":               "batch.cancel",
	"POST /api/batches/:batchId/retry":                "batch.retry",
	"POST /api/flows":                                 "flow.create",
	"POST /api/flows/:flowId/cancel":                  "flow.cancel",
	"POST /api/flows/:flowId/retry":                   "flow.retry",
	"POST /api/schedules":                             "schedule.create",
	"PUT /api/schedules/:name":                        "schedule.put",
	"DELETE /api/schedules/:name":                     "schedule.delete",
	"POST /api/schedules/:name/pause":                 "schedule.pause",
	"POST /api/schedules/:name/resume":                "schedule.resume",
	"POST /api/schedules/:name/run":                   "schedule.run",
	"POST /api/alerts":                                "alert.create",
	"PUT /api/alerts/:name":                           "alert.put",
	"DELETE /api/alerts/:name":                        "alert.delete",
	"POST /api/alerts/:name/pause":                    "alert.pause",
	"POST /api/alerts/:name/resume":                   "alert.resume",
	"POST /api/alerts/:name/test":                     "alert.test",
	"PUT /api/controls/:kind/:name":                   "control.put",
	"DELETE /api/controls/:kind/:name":                "control.delete",
	"POST /api/controls/:kind/:name/pause":            "control.pause",
	"POST /api/controls/:kind/:name/resume":           "control.resume",
	"PUT /api/queues/:queue":                          "queue.create",
	"DELETE /api/queues/:queue":                       "queue.remove",
	"PUT /api/job-types/:type":                        "job-type.put",
	"PUT /api/job-types/:type/schedules":              "job-type.schedules",
	"DELETE /api/job-types/:type":                     "job-type.delete",
	"PUT /api/workers/:workerId/drain":                "worker.drain",
	"DELETE /api/workers/:workerId/drain":             "worker.undrain",
	"POST /api/keys":                                  "key.create",
	"DELETE /api/keys/:keyId":                         "key.revoke",
	"POST /api/keys/:keyId/rotate":                    "key.rotate",
	"POST /api/rejected/:rejectedId/redrive":          "rejected.redrive",
	"DELETE /api/rejected/:rejectedId":                "rejected.discard",
}

// reads names the action for each route that shows payloads, outputs or log lines. AUDIT_READS=true records these, too.
var reads = map[string]string{
	"GET /api/jobs":             actionList,
	"GET /api/jobs/dead":        actionList,
	"GET /api/jobs/dead/groups": actionList,
	"GET /api/jobs/:jobId":      "job.read",
	"GET /api/jobs/:jobId/logs": "job.logs",
	"GET /api/stream":           "job.stream",
	"GET /api/schedules":        "schedule.list",
	"GET /api/batches/:batchId": "batch.read",
	"GET /api/flows/:flowId":    "flow.read",
	"GET /api/schedules/:name":  "schedule.read",
	"GET /api/workers":          "worker.list",

	"GET /api/rejected/:rejectedId": "rejected.read",
}

const (
	actionSubmit = "job.submit"
	actionList   = "job.list"
	actionRead   = "job.read"
)

// Actions returns the action of each route that changes something, and of each whose reads may be recorded.
func Actions() (changing, reading map[string]string) { return maps.Clone(actions), maps.Clone(reads) }
