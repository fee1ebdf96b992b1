import { guard } from "./guardian.ts";

if (process.argv[2] === "guard") await guard(process.argv[4] ?? "", process.stdin);
