-- shared/live_job: `job` is being executed as the attempt in `ref`, by the worker of the caller. A condition; whether its
-- lease is current is for the fence to say.
job.id = ref.run_id AND job.attempt = ref.attempt AND job.worker_id = %(worker_id)s AND job.state = 'running'
