import { schedule } from "node-cron";

/**
 * One pulse a second, on the second, in UTC. It only says "look at the clock": ticks are found by sweeping the agenda,
 * so a pulse that is late, or left out while the process was paused, loses nothing.
 */
export function startPulse(beat: () => void): { stop(): Promise<void> } {
  const task = schedule("* * * * * *", beat, {
    timezone: "UTC",
    name: "pulse",
    suppressMissedWarning: true,
  });
  task.on("execution:missed", beat);
  return {
    async stop() {
      await task.destroy();
    },
  };
}
