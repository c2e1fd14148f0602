package main

import "fmt"

const (
	perSecond = "reqps"
	events    = "cps"
	seconds   = "s"
	count     = "short"
	share     = "percentunit"
	bytesUnit = "bytes"
)

func one(expr, legend string) []query { return []query{{expr, legend}} }

func number(title, unit, expr, help string) panel {
	return panel{title: title, unit: unit, stat: true, queries: one(expr, ""), help: help}
}

func graph(title, unit, expr, legend, help string) panel {
	return panel{title: title, unit: unit, queries: one(expr, legend), help: help}
}

// rate returns the sum of a counter's rates.
func rate(counter, by string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, counter)
}

// quantiles returns quantiles of a histogram, by labels that the legend names.
func quantiles(title, histogram, by, legend, help string) panel {
	p := panel{title: title, unit: seconds, help: help}
	for _, q := range []string{"0.5", "0.99"} {
		p.queries = append(p.queries, query{
			fmt.Sprintf("histogram_quantile(%s, sum by (le%s) (rate(%s[$__rate_interval])))", q, by, histogram),
			legend + " p" + q[2:],
		})
	}
	return p
}

// mean returns the mean of a histogram.
func mean(title, unit, histogram, selector, by, legend, help string) panel {
	return graph(title, unit, fmt.Sprintf(
		"sum by (%[3]s) (rate(%[1]s_sum%[2]s[$__rate_interval]))"+
			" / (sum by (%[3]s) (rate(%[1]s_count%[2]s[$__rate_interval])) > 0)",
		histogram, selector, by), legend, help)
}

var overview = dashboard{uid: "overview", title: "overview", rows: []row{
	{"Now", []panel{
		number("Functions that answer", count, `count(up{job=~"jobweaver.*"} == 1)`, "Processes that Prometheus reaches."),
		number("Accepted", perSecond, `sum(rate(jobweaver_jobs_accepted_total[$__rate_interval]))`, "Jobs a second."),
		number("Completed", perSecond, `sum(rate(jobweaver_job_transitions_total{state="COMPLETED"}[$__rate_interval]))`,
			"Jobs a second."),
		number("Failed", perSecond, `sum(rate(jobweaver_job_transitions_total{state="FAILED"}[$__rate_interval]))`,
			"Dead letters a second."),
		number("Waiting longest", seconds, `max(queue:jobweaver_queue_wait_seconds:max)`,
			"How long the next job of the slowest queue has been ready."),
		number("Alerts", count, `count(ALERTS{alertname=~"JobWeaver.*", alertstate="firing"}) or vector(0)`, "That fire."),
	}},
	{"Jobs", []panel{
		graph("Jobs that have not ended", count, `sum by (state) (state_queue_job_type:jobweaver_jobs:max)`, "{{state}}",
			"As last counted."),
		graph("Into a state", perSecond, `sum by (state) (job_type_state:jobweaver_job_transitions:rate5m)`, "{{state}}",
			"FAILED are dead letters, RETRYING retries."),
		graph("Ready, not dispatched", seconds, `queue:jobweaver_queue_wait_seconds:max`, "{{queue}}",
			"How long the next job of each queue has been ready."),
	}},
	{"HTTP", []panel{
		graph("Requests", perSecond, `sum by (route, method) (route:jobweaver_http_requests:rate5m{function="gateway"})`,
			"{{method}} {{route}}", "At the gateway."),
		graph("Answers by code", perSecond,
			`sum by (code) (rate(jobweaver_http_requests_total{function="gateway"}[$__rate_interval]))`, "{{code}}",
			"At the gateway."),
		quantiles("Duration", `jobweaver_http_request_duration_seconds_bucket{function="gateway"}`, ", route", "{{route}}",
			"Without requests that wait."),
	}},
	{"Installation", []panel{
		graph("Worker slots", count, `sum(jobweaver_worker_slots{component!="pull"})`, "all",
			"Without pull workers.").and(`sum(jobweaver_worker_slots_busy{component!="pull"})`, "busy"),
		graph("Lag", count, `function_topic:jobweaver_consumer_lag_records:sum`, "{{function}} {{topic}}",
			"Records that are not yet done."),
		graph("Errors", events, rate("jobweaver_handle_errors_total", "function"), "{{function}} handle",
			"Each is tried again.").
			and(rate("jobweaver_tick_errors_total", "function"), "{{function}} tick").
			and(rate("jobweaver_publish_errors_total", "function"), "{{function}} publish"),
	}},
}}

func (p panel) and(expr, legend string) panel {
	p.queries = append(p.queries, query{expr, legend})
	return p
}

var jobs = dashboard{uid: "jobs", title: "jobs and queues", rows: []row{
	{"How many", []panel{
		graph("By state", count, `sum by (state) (state_queue_job_type:jobweaver_jobs:max)`, "{{state}}",
			"Jobs that have not ended, as last counted."),
		graph("By queue", count, `sum by (queue) (state_queue_job_type:jobweaver_jobs:max)`, "{{queue}}", ""),
		graph("By job type", count, `sum by (job_type) (state_queue_job_type:jobweaver_jobs:max)`, "{{job_type}}", ""),
	}},
	{"How long", []panel{
		graph("Oldest by state and job type", seconds,
			`max by (state, job_type) (state_queue_job_type:jobweaver_jobs_oldest_age_seconds:max)`, "{{state}} {{job_type}}",
			"Since it was accepted."),
		graph("Ready, not dispatched", seconds, `queue:jobweaver_queue_wait_seconds:max`, "{{queue}}",
			"How long the next job of a queue has been ready; a level of priority counts 10 s."),
		graph("Clock", seconds, `max(jobweaver_clock_lateness_seconds)`, "late", "How late what is due is made ready."),
		graph("Counted ago", seconds, `time() - max(jobweaver_jobs_counted_timestamp_seconds)`, "ago",
			"The age of the counts."),
	}},
	{"What happens", []panel{
		graph("Accepted", perSecond, rate("jobweaver_jobs_accepted_total", "queue, job_type"), "{{queue}} {{job_type}}", ""),
		graph("Completed", perSecond,
			rate(`jobweaver_job_transitions_total{state="COMPLETED"}`, "job_type"), "{{job_type}}", ""),
		graph("Out", count, `queue:jobweaver_attempts_in_flight:max`, "{{queue}}", "Attempts that are QUEUED or RUNNING."),
	}},
	{"What goes wrong", []panel{
		graph("Retries", perSecond,
			rate(`jobweaver_job_transitions_total{state="RETRYING"}`, "job_type"), "{{job_type}}", ""),
		graph("Dead letters", perSecond,
			rate(`jobweaver_job_transitions_total{state="FAILED"}`, "job_type"), "{{job_type}}", ""),
		graph("Failed of ended", share, `job_type:jobweaver_jobs_failed:ratio_rate30m`, "{{job_type}}", "In half an hour."),
		graph("Leases that ran out", perSecond, rate("jobweaver_leases_expired_total", "queue"), "{{queue}}",
			"Attempts sent out again."),
	}},
	{"Callbacks out", []panel{
		graph("Tries", perSecond, rate("jobweaver_deliveries_total", "outcome"), "{{outcome}}",
			"To deliver ends of jobs to their callbackUrls."),
		quantiles("Duration", "jobweaver_delivery_duration_seconds_bucket", "", "a try", ""),
	}},
}}

const ofFunction = `{function=~"$function"}`

var functions = dashboard{uid: "functions", title: "functions and Kafka", perFunction: true, rows: []row{
	{"Handling", []panel{
		graph("Events handled", events, rate("jobweaver_events_handled_total"+ofFunction, "function, type"),
			"{{function}} {{type}}", ""),
		quantiles("Duration", "jobweaver_handle_duration_seconds_bucket"+ofFunction, ", function", "{{function}}",
			"Of a batch."),
		quantiles("Age of events", "jobweaver_handle_event_age_seconds_bucket"+ofFunction, ", function", "{{function}}",
			"Of a batch's first, when it was handled: lag, as time."),
	}},
	{"Batches and clocks", []panel{
		mean("Events a batch", count, "jobweaver_handle_batch_events", ofFunction, "function", "{{function}}", "On average."),
		quantiles("Ticks", "jobweaver_tick_duration_seconds_bucket"+ofFunction, ", function", "{{function}}", ""),
		graph("Errors", events, rate("jobweaver_handle_errors_total"+ofFunction, "function"), "{{function}} handle",
			"Each is tried again.").
			and(rate("jobweaver_tick_errors_total"+ofFunction, "function"), "{{function}} tick"),
		graph("Requests by code", perSecond, rate("jobweaver_http_requests_total"+ofFunction, "function, code"),
			"{{function}} {{code}}", "Behind a Broker; the gateway's too."),
	}},
	{"Publishing", []panel{
		graph("Events published", events, rate("jobweaver_events_published_total"+ofFunction, "function, type"),
			"{{function}} {{type}}", ""),
		quantiles("Duration", "jobweaver_publish_duration_seconds_bucket"+ofFunction, ", function", "{{function}}",
			"Until all were acknowledged."),
		mean("Events at once", count, "jobweaver_publish_batch_events", ofFunction, "function", "{{function}}",
			"On average."),
		graph("Errors", events, rate("jobweaver_publish_errors_total"+ofFunction, "function"), "{{function}}",
			"Each is tried again."),
	}},
	{"Consumers", []panel{
		graph("Lag by topic", count, "sum by (function, topic) (jobweaver_consumer_lag_records"+ofFunction+")",
			"{{function}} {{topic}}", "Records that are not yet done."),
		graph("Largest lag of a partition", count,
			"topk(10, max by (topic, partition) (jobweaver_consumer_lag_records"+ofFunction+"))", "{{topic}} {{partition}}",
			""),
		graph("Done and not committable", count,
			"sum by (topic) (jobweaver_consumer_committable_gap_records"+ofFunction+")", "{{topic}}",
			"Behind an attempt that is not done."),
	}},
	{"Commits and trouble", []panel{
		quantiles("Commits", "jobweaver_consumer_commit_duration_seconds_bucket"+ofFunction, ", function", "{{function}}",
			""),
		graph("Connected again", events, rate("jobweaver_consumer_disconnects_total"+ofFunction, "function"),
			"{{function}}", ""),
		graph("Rejected", events, rate("jobweaver_events_rejected_total"+ofFunction, "function, reason"),
			"{{function}} {{reason}}", "Dead letters of what is no event that can be handled."),
		graph("Refused", events, rate("jobweaver_events_refused_total"+ofFunction, "function, type"),
			"{{function}} {{type}}", "Lost."),
	}},
}}

var database = dashboard{uid: "database", title: "database and workers", rows: []row{
	{"Connections", []panel{
		graph("In use", share,
			`sum by (function) (jobweaver_database_connections{state="used"})`+
				" / sum by (function) (jobweaver_database_connections_limit)",
			"{{function}}", "Of all that there may be."),
		graph("Open", count, "sum by (function, state) (jobweaver_database_connections)", "{{function}} {{state}}", ""),
		graph("Waits", events, rate("jobweaver_database_acquire_waits_total", "function"), "{{function}}",
			"A connection was waited for, or opened."),
		graph("Waiting", seconds, rate("jobweaver_database_acquire_wait_seconds_total", "function"), "{{function}}",
			"Seconds a second."),
	}},
	{"Workers", []panel{
		graph("Slots", count, `sum(jobweaver_worker_slots{component!="pull"})`, "all", "Without pull workers.").
			and(`sum(jobweaver_worker_slots_busy{component!="pull"})`, "busy").
			and("sum(jobweaver_worker_slots_overdue)", "overdue").and("sum(jobweaver_worker_attempts_held)", "held"),
		graph("Attempts by outcome", perSecond, rate("jobweaver_worker_attempts_total", "outcome"), "{{outcome}}", ""),
		graph("Attempts by job type", perSecond, rate("jobweaver_worker_attempts_total", "job_type"), "{{job_type}}", ""),
		quantiles("Handlers", "jobweaver_worker_handler_duration_seconds_bucket", ", job_type", "{{job_type}}", ""),
	}},
	{"Claiming and settling", []panel{
		quantiles("Claims", "jobweaver_worker_claim_duration_seconds_bucket", "", "a claim", ""),
		quantiles("Settling", "jobweaver_worker_settle_duration_seconds_bucket", "", "a batch", ""),
		mean("Attempts at once", count, "jobweaver_worker_claim_batch_attempts", "", "job", "claimed", "On average.").
			and(mean("", "", "jobweaver_worker_settle_batch_attempts", "", "job", "", "").queries[0].expr, "settled"),
		graph("Outcomes not published", count, "max by (instance) (jobweaver_worker_outcomes_unpublished)", "{{instance}}",
			"At 2,000 a worker takes no more."),
		graph("Settled for others", events, rate("jobweaver_worker_attempts_reaped_total", "outcome"), "{{outcome}}", ""),
	}},
	{"Processes", []panel{
		graph("Memory", bytesUnit, `process_resident_memory_bytes{job=~"jobweaver.*"}`, "{{component}} {{instance}}", ""),
		graph("CPU", count, `rate(process_cpu_seconds_total{job=~"jobweaver.*"}[$__rate_interval])`,
			"{{component}} {{instance}}", "Cores."),
		graph("Goroutines", count, `go_goroutines{job=~"jobweaver.*"}`, "{{component}} {{instance}}", ""),
		graph("Versions", count, "count by (function, version) (jobweaver_build_info)", "{{function}} {{version}}", ""),
	}},
}}
