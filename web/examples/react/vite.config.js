// SPDX-License-Identifier: MPL-2.0
// Settings of Vite for this page.
export default {
  esbuild: { jsx: "automatic" },
  // The package's worker is a module with modules of its own, and would not be found from where Vite keeps what it has packed.
  worker: { format: "es" },
  optimizeDeps: { exclude: ["superpixels"] },
};
