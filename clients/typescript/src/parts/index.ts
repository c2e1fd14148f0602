export * from "./batches.js";
export * from "./controls.js";
export * from "./installation.js";
export * from "./operations.js";
export * from "./alerts.js";
export * from "./schedules.js";
