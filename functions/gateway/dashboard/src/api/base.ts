/** base is the path below which this page is reached, without a slash at its end: the files of the build are in base/assets. */
export const base = /^(.*)\/assets\/[^/]+$/.exec(new URL(import.meta.url).pathname)?.[1] ?? '';
