/** The answer of the gateway to one entry of a request. */
export interface Answer {
  status: number;
  why: string;
}

interface Waiting {
  readonly entry: string;
  readonly answer: (answer: Answer) => void;
}

const most = 500; // entries in a request, as the gateway allows
const mostChars = 1 << 20; // beyond this a request gets no further entry

/** Sends entries, which are JSON, together: one request at a time carries all that have come while the last one was under way. */
export class Together {
  readonly #send: (entries: string[]) => Promise<Answer[]>;
  readonly #waiting: Waiting[] = [];
  #sending = false;

  constructor(send: (entries: string[]) => Promise<Answer[]>) {
    this.#send = send;
  }

  add(entry: string): Promise<Answer> {
    return new Promise((answer) => {
      this.#waiting.push({ entry, answer });
      if (!this.#sending) {
        this.#sending = true;
        setTimeout(() => void this.#sendAll()); // attempts of one claim may end in the same turn of the event loop
      }
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#next();
      const answers = await this.#send(batch.map(({ entry }) => entry));
      // A request that is refused as a whole may be refused because of one entry.
      if (batch.length > 1 && answers.every(({ status }) => status === 400 || status === 413)) {
        for (const one of batch) {
          one.answer((await this.#send([one.entry]))[0]!);
        }
      } else {
        batch.forEach((one, i) => one.answer(answers[i]!));
      }
    }
    this.#sending = false;
  }

  #next(): Waiting[] {
    let [n, chars] = [0, 0];
    while (n < this.#waiting.length && n < most && (n === 0 || chars + this.#waiting[n]!.entry.length <= mostChars)) {
      chars += this.#waiting[n++]!.entry.length;
    }
    return this.#waiting.splice(0, n);
  }
}
