// Modules are numbered in the order in which they come, not by their path, so that the same sources give the same
// bundle wherever they are built.
const { DefinePlugin } = require("@rspack/core");
const { version } = require("./package.json");

module.exports = {
  optimization: { moduleIds: "natural", chunkIds: "natural" },
  // The extension tells the kernel its own version, not JupyterLab's.
  plugins: [new DefinePlugin({ VERSION: JSON.stringify(version) })],
};
