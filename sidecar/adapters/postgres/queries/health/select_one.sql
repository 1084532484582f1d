-- select_one: does Postgres answer?
SELECT 1 AS one;
