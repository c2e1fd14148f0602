package pgpool

// AwaitSchemaFor is AwaitSchema with another time limit.
var AwaitSchemaFor = awaitSchema

// SpillQuery is the statement by which the probe has the server write to its disk.
const SpillQuery = spillQuery
