import { Webhook as StandardWebhook } from "standardwebhooks";

import { type Codec, codecOf, type Numbers } from "./json.js";
import type { components } from "./schema.gen.js";

/** A verified message. */
export interface Ending {
  /** The id of the message. A message arrives at least once: store the ids of handled messages. */
  id: string;
  /** The job as it was when it ended. */
  job: components["schemas"]["JobSummary"];
}

export interface WebhookOptions {
  numbers?: Numbers;
}

/** checked returns a secret, and throws for a text that is none: each message would fail. */
function checked(secret: string): string {
  if (!/^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/.test(secret)) {
    throw new TypeError("a webhook secret is whsec_ and base64, as jobweaver webhook-secrets prints it");
  }
  return secret;
}

/** Verifies deliveries: messages about the ends of jobs to their callbackUrl (docs/callbacks.md). */
export class Webhook {
  readonly #by: StandardWebhook[];
  readonly #codec: Codec;

  /**
   * Takes the secrets that `jobweaver webhook-secrets end` prints: one, or two during a change of the secret. Blanks and line ends
   * around a secret are not part of it. The last argument may be options: with numbers "lossless" numbers are read as by a client with this option.
   */
  constructor(...given: [...secrets: string[], options: WebhookOptions] | string[]) {
    const all: (string | WebhookOptions)[] = given;
    const secrets = all.filter((one): one is string => typeof one === "string");
    this.#codec = codecOf(all.find((one): one is WebhookOptions => typeof one === "object")?.numbers);
    if (secrets.length === 0) {
      throw new TypeError("a webhook needs a secret");
    }
    this.#by = secrets.map((secret) => new StandardWebhook(checked(secret.trim())));
  }

  /**
   * Verifies a message, given the body as it arrived: text or bytes, not parsed. It throws if the message is not signed with one of
   * the secrets, was changed, or is over five minutes old: answer with 401.
   */
  verify(body: string | Uint8Array, headers: Headers | Record<string, string | string[] | undefined>): Ending {
    const text = typeof body === "string" ? body : new TextDecoder().decode(body);
    const plain: Record<string, string> = {};
    for (const [name, value] of headers instanceof Headers ? headers : Object.entries(headers)) {
      if (typeof value === "string") {
        plain[name.toLowerCase()] = value;
      }
    }
    let failure: unknown;
    for (const by of this.#by) {
      try {
        by.verify(text, plain);
        return { id: plain["webhook-id"] ?? "", job: this.#codec.parse(text) as Ending["job"] };
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}
