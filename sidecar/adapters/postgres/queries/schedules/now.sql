-- schedules/now: the database's time, which decides what is due.
SELECT clock_timestamp() AS now;
