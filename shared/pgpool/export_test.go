package pgpool

// AwaitSchemaFor is AwaitSchema with another patience.
var AwaitSchemaFor = awaitSchema
