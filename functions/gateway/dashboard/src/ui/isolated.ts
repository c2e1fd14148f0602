/** Piece is a part of a text. One of letters that run from right to left must not move the text around it. */
export interface Piece {
  text: string;
  isolate: boolean;
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** isolated splits JSON where strings of letters that run from right to left begin and end; other text is one piece. */
export function isolated(text: string): Piece[] {
  if (!RIGHT_TO_LEFT.test(text)) {
    return [{ text, isolate: false }];
  }
  return text
    .split(/("(?:[^"\\\n]|\\.)*")/)
    .filter((piece) => piece !== '')
    .map((piece) => ({ text: piece, isolate: RIGHT_TO_LEFT.test(piece) }));
}
