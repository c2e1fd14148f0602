// A function for jobs of type FUNCTION: it counts the words of a text. To make your own function, change count.
// serve.js and later.js can stay as they are.
import { later } from "./later.js";
import { now, Refusal, serve } from "./serve.js";

// count takes an event whose data is {"text": "…"}, and returns the output of its job.
function count(event) {
  const text = event.data?.text;
  if (typeof text !== "string") {
    throw new Refusal("WORDS.NO_TEXT", 'the data has to be {"text": "…"}');
  }
  return { words: text.split(/\s+/).filter(Boolean).length };
}

serve({
  "/": now(count), // answers with the output
  "/later": later(count), // answers 202, and calls back with the output
});
