// The same sources give the same bundle wherever they are built: modules are numbered in the order in which they come,
// not by their path. The entry keeps its long names, since the short ones that the minifier picks there differ from
// folder to folder; elsewhere it picks the same ones, and hides the folder that long names would tell.
const { DefinePlugin, SwcJsMinimizerRspackPlugin } = require("@rspack/core");
const { version } = require("./package.json");

const ENTRY = /remoteEntry/;
const minified = (which, mangle) =>
  new SwcJsMinimizerRspackPlugin({ ...which, minimizerOptions: { mangle, format: { comments: false } } });

module.exports = {
  optimization: {
    moduleIds: "natural",
    chunkIds: "natural",
    minimizer: [minified({ exclude: ENTRY }, true), minified({ include: ENTRY }, false)],
  },
  // The extension tells the kernel its own version, not JupyterLab's.
  plugins: [new DefinePlugin({ VERSION: JSON.stringify(version) })],
};
