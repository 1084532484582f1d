"""The fault suite: real sidecars, apps and servers, broken one way after another, and judged.

python -m tests.acceptance.faults                 every fault, and the report docs/faults.md
python -m tests.acceptance.faults disk-full …     these; prints the verdict, writes no report
"""
