package apierror

import "net/http"

// Code names what went wrong; clients switch on it. A code, once published, keeps its meaning.
type Code string

// The codes of the API's answers.
const (
	InvalidJobRequest      Code = "API.INVALID_JOB_REQUEST"
	InvalidEvent           Code = "API.INVALID_EVENT"
	Unauthorized           Code = "API.UNAUTHORIZED"
	Forbidden              Code = "API.FORBIDDEN"
	JobNotFound            Code = "API.JOB_NOT_FOUND"
	ScheduleNotFound       Code = "API.SCHEDULE_NOT_FOUND"
	ScheduleExists         Code = "API.SCHEDULE_EXISTS"
	AlertNotFound          Code = "API.ALERT_NOT_FOUND"
	AlertExists            Code = "API.ALERT_EXISTS"
	PreconditionFailed     Code = "API.PRECONDITION_FAILED"
	BatchNotFound          Code = "API.BATCH_NOT_FOUND"
	BatchClosed            Code = "API.BATCH_CLOSED"
	FlowNotFound           Code = "API.FLOW_NOT_FOUND"
	NotFound               Code = "API.NOT_FOUND"
	MethodNotAllowed       Code = "API.METHOD_NOT_ALLOWED"
	IdempotencyConflict    Code = "API.IDEMPOTENCY_CONFLICT"
	JobDeleted             Code = "API.JOB_DELETED"
	InvalidStateTransition Code = "API.INVALID_STATE_TRANSITION"
	FlowCompensated        Code = "API.FLOW_COMPENSATED"
	CallbackExpired        Code = "API.CALLBACK_EXPIRED"
	AttemptOver            Code = "API.ATTEMPT_OVER"
	CheckpointTooLarge     Code = "API.CHECKPOINT_TOO_LARGE"
	RequestTimeout         Code = "API.REQUEST_TIMEOUT"
	PayloadTooLarge        Code = "API.PAYLOAD_TOO_LARGE"
	UnsupportedMediaType   Code = "API.UNSUPPORTED_MEDIA_TYPE"
	RateLimited            Code = "API.RATE_LIMITED"
	Internal               Code = "API.INTERNAL"
	Unavailable            Code = "API.UNAVAILABLE"
	Sealed                 Code = "API.SEALED"
)

// The codes with which an attempt ends.
const (
	SimulationFailed Code = "WORKER.SIMULATION_FAILED"
	Timeout          Code = "WORKER.TIMEOUT"
	Panic            Code = "WORKER.PANIC"
	Lost             Code = "WORKER.LOST"
	UnknownJobType   Code = "WORKER.UNKNOWN_JOB_TYPE"
	CallbackTimeout  Code = "WORKER.CALLBACK_TIMEOUT"
	CallbackFailed   Code = "WORKER.CALLBACK_FAILED"
	Cancelled        Code = "WORKER.CANCELLED"
	HandlerFailed    Code = "WORKER.HANDLER_FAILED"
	InvalidPayload   Code = "WORKER.INVALID_PAYLOAD"
	InvalidOutput    Code = "WORKER.INVALID_OUTPUT"
	OutputTooLarge   Code = "WORKER.OUTPUT_TOO_LARGE"
	CheckpointBytes  Code = "WORKER.CHECKPOINT_TOO_LARGE"
	OutputMissing    Code = "WORKER.OUTPUT_MISSING"
	InputTooLarge    Code = "WORKER.INPUT_TOO_LARGE"
	StepRepeated     Code = "WORKER.STEP_REPEATED"
	NoSteps          Code = "WORKER.NO_STEPS"
	ChildFailed      Code = "WORKER.CHILD_FAILED"
	NoResult         Code = "WORKER.NO_RESULT"
	NotConfigured    Code = "WORKER.NOT_CONFIGURED"
	PayloadSealed    Code = "WORKER.PAYLOAD_SEALED"
	EmailRefused     Code = "WORKER.EMAIL_REFUSED"
	EmailFailed      Code = "WORKER.EMAIL_FAILED"
	CallFailed       Code = "WORKER.CALL_FAILED"
	CallRefused      Code = "WORKER.CALL_REFUSED"

	ReportQueryFailed Code = "WORKER.REPORT_QUERY_FAILED"
	ReportNotStored   Code = "WORKER.REPORT_NOT_STORED"
	ReportTooLarge    Code = "WORKER.REPORT_TOO_LARGE"
)

// The codes with which a job ends without an attempt.
const (
	InvalidJob       Code = "SCHEDULER.INVALID_JOB"
	Expired          Code = "SCHEDULER.EXPIRED"
	DependencyFailed Code = "SCHEDULER.DEPENDENCY_FAILED"
	NoWorker         Code = "SCHEDULER.NO_WORKER"
	InvalidFanOut    Code = "SCHEDULER.INVALID_FAN_OUT"
	ElementFailed    Code = "SCHEDULER.ELEMENT_FAILED"
)

// Entry is one row of the table of codes.
type Entry struct {
	Code    Code
	Status  int    // 0: never an HTTP answer, it stands in a job's lastError and attempts
	Meaning string // one sentence for people
}

var table = []Entry{
	{InvalidJobRequest, http.StatusBadRequest,
		"The request is not valid; `details` names each place that is wrong."},
	{InvalidEvent, http.StatusBadRequest,
		"The CloudEvent breaks the specification, or its type cannot be made into a job."},
	{Unauthorized, http.StatusUnauthorized,
		"The API key is missing or not valid; or a callback has neither a valid secret nor a valid signature."},
	{Forbidden, http.StatusForbidden, "The API key does not allow this, or a browser sent the request from another site."},
	{JobNotFound, http.StatusNotFound, "There is no job with this id."},
	{ScheduleNotFound, http.StatusNotFound, "There is no schedule with this name."},
	{ScheduleExists, http.StatusConflict, "There already is a schedule with this name."},
	{AlertNotFound, http.StatusNotFound, "There is no alert with this name."},
	{AlertExists, http.StatusConflict, "There already is an alert with this name."},
	{PreconditionFailed, http.StatusPreconditionFailed,
		"The job, schedule, alert or control is not the one that `If-Match` names: it was changed or removed since."},
	{BatchNotFound, http.StatusNotFound, "There is no batch with this id."},
	{BatchClosed, http.StatusConflict, "The batch is closed: it takes no more jobs."},
	{FlowNotFound, http.StatusNotFound, "There is no flow with this id."},
	{NotFound, http.StatusNotFound, "There is nothing at this path."},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "This path does not support this method."},
	{IdempotencyConflict, http.StatusConflict,
		"The idempotency key was used before, for a different request."},
	{JobDeleted, http.StatusConflict,
		"The `jobId` of the request was that of a job that is deleted; it can be used again after `FORGET_AFTER` and a day."},
	{InvalidStateTransition, http.StatusConflict,
		"The job's state does not allow the command or callback, or another one is not confirmed yet."},
	{FlowCompensated, http.StatusConflict,
		"A job that waits for the failure of another has run: the retry must say with `from` or `all` which jobs run again."},
	{CallbackExpired, http.StatusConflict, "The callback came after the attempt's deadline, and changes nothing."},
	{AttemptOver, http.StatusConflict,
		"The attempt is not this worker's any more: it ended, timed out, or its worker was silent for too long."},
	{CheckpointTooLarge, http.StatusRequestEntityTooLarge, "The checkpoint is larger than 64 KiB."},
	{RequestTimeout, http.StatusRequestTimeout, "The body did not arrive in time; send the request again."},
	{PayloadTooLarge, http.StatusRequestEntityTooLarge, "The body, or one job in it, is too large."},
	{UnsupportedMediaType, http.StatusUnsupportedMediaType,
		"This path does not accept this Content-Type."},
	{RateLimited, http.StatusTooManyRequests, "Too many requests; try again after `Retry-After`."},
	{Internal, http.StatusInternalServerError, "The server failed; its log has the trace id."},
	{Unavailable, http.StatusServiceUnavailable,
		"The store cannot be reached, or its disk is full; try again after `Retry-After`, with the same idempotency key."},
	{Sealed, http.StatusServiceUnavailable,
		"The data of the request is sealed with a key that the gateway does not have, or it was altered."},

	{SimulationFailed, 0, "A step of a simulation failed."},
	{Timeout, 0, "The attempt ran longer than the job's `timeoutMs`."},
	{Panic, 0, "The handler panicked."},
	{Lost, 0, "The worker died, and so did the workers of the following attempts."},
	{UnknownJobType, 0, "The worker has no handler for the job's type. The job waits for a worker that has one."},
	{CallbackTimeout, 0, "The outside system did not call back in time."},
	{CallbackFailed, 0, "The outside system reported a failure without an error code."},
	{Cancelled, 0, "The attempt was cancelled."},
	{HandlerFailed, 0, "The job type's handler returned an error without an error code."},
	{InvalidPayload, 0, "The payload does not match the job type's schema, or its handler cannot use it."},
	{InvalidOutput, 0, "The handler's output, its checkpoint or the result of a step is not JSON that can be stored."},
	{OutputTooLarge, 0, "The handler's output, or the result of one of its steps, is larger than 256 KiB."},
	{CheckpointBytes, 0, "The handler's checkpoint is larger than 64 KiB."},
	{OutputMissing, 0,
		"The payload refers to the output of a job that has not completed or is deleted, or to a path that it lacks."},
	{InputTooLarge, 0,
		"The outputs to which the payload refers have more than 512 KiB as they are stored, or the payload has with them."},
	{StepRepeated, 0, "The handler has two steps of the same name, or a step and a sleep."},
	{NoSteps, 0, "The handler has a step or a sleep, and its worker is no pull worker: only these keep steps."},
	{ChildFailed, 0, "A job that the handler called has not completed."},
	{NoResult, 0, "The handler of a batch returned no result for the job."},
	{NotConfigured, 0, "The job type needs a setting that the worker does not have; the message names it."},
	{PayloadSealed, 0, "The payload is sealed with a key that the worker does not have, or it was altered."},
	{EmailRefused, 0, "The mail server refused the message, its sender or a recipient, for good."},
	{EmailFailed, 0, "The mail server could not be reached, or answered that it may accept the message later."},
	{CallFailed, 0, "The URL that the job calls did not answer, or answered with a status other than 2xx."},
	{CallRefused, 0, "The URL that the job calls has a host that does not exist, or that jobs must not reach."},
	{ReportQueryFailed, 0, "A report's query failed, or its database could not be reached."},
	{ReportNotStored, 0, "A report's file could not be written: a full disk, or a bucket that is away or refuses it."},
	{ReportTooLarge, 0, "A report has more rows or columns than its format allows."},

	{InvalidJob, 0, "The scheduler cannot use the job as it was accepted."},
	{Expired, 0, "The job had not started by its `expiresAt`."},
	{DependencyFailed, 0, "A job that this one waits for did not complete."},
	{NoWorker, 0, "For `NO_WORKER_TIMEOUT`, no worker of the job's queue ran its type."},
	{InvalidFanOut, 0,
		"The array of the fan-out is missing or not an array, or the job for an element would not be valid."},
	{ElementFailed, 0, "The jobs of some of the fan-out's elements failed or were cancelled."},
}

var statuses = func() map[Code]int {
	m := make(map[Code]int, len(table))
	for _, e := range table {
		m[e.Code] = e.Status
	}
	return m
}()

// Table is every code, in the order of the documentation.
func Table() []Entry { return append([]Entry(nil), table...) }
