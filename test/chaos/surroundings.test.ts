/** What is around a replica fails, refuses or goes away. Suites share a file so that they wait side by side. */
import "./removal.ts";
import "./redis.ts";
import "./policies.ts";
import "./stale.ts";
import "./clock.ts";
import "./refusals.ts";
import "./concurrency.ts";
import "./manual-runs.ts";
