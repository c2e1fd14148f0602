#!/usr/bin/env node
// Writes TypeScript types for the payloads and outputs of a gateway's job types, from their JSON Schemas:
//
//   npx jobweaver-types > src/job-types.ts
//
// with JOBWEAVER_URL (default http://localhost:8080) and JOBWEAVER_API_KEY. It needs json-schema-to-typescript.
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { apiError, ApiError, JobWeaverError } from "./errors.js";
import { JobWeaver } from "./client.js";

interface JobType {
  name: string;
  schema: unknown;
  outputSchema?: unknown;
}

/** Returns the text of the module. */
export async function writeTypes(types: JobType[]): Promise<string> {
  const { compile } = await import("json-schema-to-typescript").catch(() => {
    throw new JobWeaverError("install json-schema-to-typescript beside this package: npm install -D json-schema-to-typescript");
  });
  const parts = ["// Made by jobweaver-types of the gateway's job types. Do not edit.\n"];
  const used = new Set(["JobTypes", "JobOutputs"]);
  const write = async (type: JobType, what: string, of: unknown): Promise<string> => {
    if (of === null || of === undefined) {
      return `  ${JSON.stringify(type.name)}: unknown; // its workers advertise no schema\n`;
    }
    let name = `${pascal(type.name)}${what}`;
    while (used.has(name)) {
      name += "_";
    }
    used.add(name);
    const schema = { ...of, title: undefined, $id: undefined };
    const inner = await compile(schema as never, name, { bannerComment: "", additionalProperties: false, declareExternallyReferenced: true });
    // The parts of a payload are in its own namespace: two payloads may both have a Step.
    parts.push(`export namespace ${name}Types {\n${inner.trimEnd().replaceAll(/^(?=.)/gm, "  ")}\n}\n`);
    parts.push(`export type ${name} = ${name}Types.${inner.match(/export (?:interface|type) (\w+)/)?.[1] ?? name};\n`);
    return `  ${JSON.stringify(type.name)}: ${name};\n`;
  };
  const [payloads, outputs] = [[] as string[], [] as string[]];
  for (const type of [...types].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    payloads.push(await write(type, "Payload", type.schema));
    outputs.push(await write(type, "Output", type.outputSchema));
  }
  parts.push(`/** For new JobWeaver<JobTypes>(…), and for jobs.task<JobTypes["A"], JobOutputs["A"]>("A"). */`);
  parts.push(`export interface JobTypes {\n${payloads.join("")}}\n`, `export interface JobOutputs {\n${outputs.join("")}}\n`);
  return parts.join("\n");
}

function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + (word === word.toUpperCase() ? word.slice(1).toLowerCase() : word.slice(1)))
    .join("");
}

async function main(): Promise<void> {
  const client = new JobWeaver({ url: process.env.JOBWEAVER_URL ?? "http://localhost:8080", apiKey: process.env.JOBWEAVER_API_KEY });
  const { data, error, response } = await client.api.GET("/api/job-types");
  if (!data) {
    throw apiError(response, error);
  }
  process.stdout.write(await writeTypes(data.jobTypes));
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main().catch((error: unknown) => {
    console.error(error instanceof ApiError || error instanceof JobWeaverError ? `jobweaver-types: ${error.message}` : error);
    process.exitCode = 1;
  });
}
