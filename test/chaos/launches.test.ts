/**
 * Launches that are interrupted or paused. Suites share a file so that they wait side by side: a single one runs
 * by `vitest run --project cluster test/chaos -t "<its title>"`.
 */
import "./crash-points.ts";
import "./paused.ts";
import "./fenced.ts";
