/**
 * The control plane itself is restarted, hangs, or lacks something; on clusters of their own, side by side. They mostly wait,
 * so the hundred ticks that must all be in time are launched beside them.
 */
import "./api-server.ts";
import "./access.ts";
import "./same-tick.ts";
