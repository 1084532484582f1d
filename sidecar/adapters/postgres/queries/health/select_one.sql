-- health/select_one: checks that Postgres answers.
SELECT 1 AS one;
