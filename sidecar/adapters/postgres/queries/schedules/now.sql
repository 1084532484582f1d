-- The time that decides what is due.
SELECT clock_timestamp() AS now;
