-- shared/live_run: `run` is being executed as the attempt in `ref`, under the term of the caller. A condition; whether
-- that term is the current one is for the fence to say.
run.id = ref.run_id AND run.attempt = ref.attempt AND run.epoch = %(epoch)s AND run.state = 'running'
