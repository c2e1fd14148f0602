package pgpool

// AwaitSchemaFor is AwaitSchema with another time limit.
var AwaitSchemaFor = awaitSchema
