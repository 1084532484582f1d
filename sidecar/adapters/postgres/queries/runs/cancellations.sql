-- runs/cancellations: running runs whose end was requested.
SELECT id, attempt, cancel_reason, cancel_note FROM baton.run
WHERE group_id = %(group_id)s AND epoch = %(epoch)s AND state = 'running' AND cancel_reason IS NOT NULL;
