package serve

// Place is the advisory lock of a process.
const Place = place
