"""PROMISED: teams, quotas, cohorts, queues."""
