// Modules are numbered in the order in which they come, not by their path, so that the same sources give the same
// bundle wherever they are built.
module.exports = { optimization: { moduleIds: "natural", chunkIds: "natural" } };
