/** The control plane itself is restarted, hangs, or lacks something; on clusters of their own, side by side. */
import "./api-server.ts";
import "./access.ts";
