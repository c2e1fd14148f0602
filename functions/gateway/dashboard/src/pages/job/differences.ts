/** MOST bounds the work of a comparison: beyond that many pairs of tokens, all between the equal ends differs. */
const MOST = 4_000_000;

/** Part is a piece of a text that the other text has, too, or that it lacks. */
export interface Part {
  text: string;
  differs: boolean;
}

/** differences returns of each token of two lists whether the other list lacks it: the rest is their longest common sequence. */
export function differences(a: readonly string[], b: readonly string[]): [boolean[], boolean[]] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) {
    start++;
  }
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) {
    end++;
  }
  const inA = a.map((_, i) => i >= start && i < a.length - end);
  const inB = b.map((_, i) => i >= start && i < b.length - end);
  const rows = a.length - end - start;
  const columns = b.length - end - start;
  if (rows * columns === 0 || rows * columns > MOST) {
    return [inA, inB];
  }
  const width = columns + 1;
  const common = new Uint16Array((rows + 1) * width); // of what follows each pair
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      common[i * width + j] = a[start + i] === b[start + j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  for (let i = 0, j = 0; i < rows && j < columns; ) {
    if (a[start + i] === b[start + j]) {
      inA[start + i++] = false;
      inB[start + j++] = false;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      i++;
    } else {
      j++;
    }
  }
  return [inA, inB];
}

/** wordDifferences splits two texts where they begin and cease to differ, by words. */
export function wordDifferences(a: string, b: string): [Part[], Part[]] {
  const [words, others] = [wordsOf(a), wordsOf(b)];
  const [inA, inB] = differences(words, others);
  return [parts(words, inA), parts(others, inB)];
}

function wordsOf(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** parts joins the words that differ, with the space between them. */
function parts(words: readonly string[], differ: readonly boolean[]): Part[] {
  const joined: Part[] = [];
  words.forEach((text, i) => {
    const between = text.trim() === '' && differ[i - 1] === true && differ[i + 1] === true;
    const differs = between || differ[i] === true;
    const last = joined.at(-1);
    if (last?.differs === differs) {
      last.text += text;
    } else {
      joined.push({ text, differs });
    }
  });
  return joined;
}
